package model

import (
	"strings"
	"testing"

	"agentteam/pkg/team/codec"
)

// A text is encoded as package codec does it, but for NUL.
func FuzzAppendText(f *testing.F) {
	var low strings.Builder
	for c := range byte(0x80) {
		low.WriteByte(c)
	}
	for _, s := range []string{"", "plain", low.String(), "写 🎯 \u2028\u2029 <&>", "\xff cut \xe5\x86", "\b\f\x7f", `"\\"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := codec.Plain(strings.ReplaceAll(s, "\x00", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := appendText([]byte("x"), s); string(got) != "x"+string(want) {
			t.Errorf("%q is encoded %s, want x%s", s, got, want)
		}
	})
}
