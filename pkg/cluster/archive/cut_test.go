package archive

import (
	"bytes"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"

	"agentteam/pkg/team"
)

// A part of a few bytes that unpacks to a large value is refused before it is read.
func TestLargeEntriesAreRefused(t *testing.T) {
	pack := func(state string, message archive.Header) *bytes.Buffer {
		var b bytes.Buffer
		w := s2.NewWriter(&b)
		out := archive.NewWriter(w)
		for _, err := range []error{
			add(out, archive.Header{Name: stateEntry, PayloadSize: int64(len(state))}, []byte(state)),
			add(out, message, bytes.Repeat([]byte("x"), int(message.HeaderSize+message.PayloadSize))),
			add(out, archive.Header{}, nil),
			w.Close(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return &b
	}
	const state = `{"messages":1,"bytes":1,"first_seq":1,"last_seq":1}`
	for name, tt := range map[string]struct {
		part *bytes.Buffer
		want string
	}{
		"fits":    {pack(state, archive.Header{Name: "a", Sequence: 1, PayloadSize: 1}), ""},
		"state":   {pack(state+strings.Repeat(" ", mostState), archive.Header{Name: "a", Sequence: 1, PayloadSize: 1}), errPacked.Error()},
		"message": {pack(state, archive.Header{Name: "a", Sequence: 1, PayloadSize: mostMessage + 1}), "message 1 is larger than a server takes"},
	} {
		err := inspect("p", tt.part, func(string) bool { return true })
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || team.CodeOf(err) != team.InvalidArgument) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
