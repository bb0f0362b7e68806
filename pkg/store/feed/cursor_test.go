package feed

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestCursor(t *testing.T) {
	for _, p := range []Place{
		{},
		{{seq: 1, at: 9}, {seq: 127, given: 3, made: 5, at: 1 << 40}, {seq: 128}, {seq: 1 << 40, made: 1<<32 - 1}},
		{{seq: 1<<64 - 1, given: maxGiven}, {}, {}, {}},
	} {
		got, err := p.Cursor("t").Place("t")
		if err != nil || got != p {
			t.Errorf("%v is read as %v, %v", p, got, err)
		}
	}
	if c := (Place{{seq: 1e6, at: 1 << 40}, {seq: 1e6, at: 1 << 40}, {seq: 1e6, at: 1 << 40}, {seq: 1e6, at: 1 << 40}}).Cursor("t"); len(c) > 100 {
		t.Errorf("the cursor of a large team is long: %s", c)
	}
}

// What is no cursor is refused before anything is read, and nothing is given.
func TestNoCursor(t *testing.T) {
	r := newRig(t)
	r.says("ann", "text")
	good := string(r.past(Options{})[0].Cursor)
	newer := Place{}.Cursor("t")
	raw, err := base64.RawURLEncoding.DecodeString(string(newer))
	r.ok(err)
	raw[0]++
	for name, tt := range map[string]struct{ cursor, want string }{
		"nonsense":         {"nonsense", "is not a cursor"},
		"an older form":    {"12.34", "is not a cursor"},
		"cut":              {good[:len(good)-1], "is not a cursor"},
		"longer":           {good + "A", "is not a cursor"},
		"another letter":   {strings.Replace(good, good[10:11], string(good[10]^1), 1), "is not a cursor"},
		"another alphabet": {good + "=", "is not a cursor"},
		"of another team":  {string(Place{}.Cursor("other")), "not of team t"},
		"another version":  {sealed(raw[:len(raw)-checksumBytes]), "version 2"},
		"long":             {strings.Repeat("x", 5000), "is not a cursor"},
	} {
		err := Read(t.Context(), r.bt, Options{After: Cursor(tt.cursor)}, func(e Entry) error {
			t.Errorf("%s: given %s", name, told(e))
			return nil
		})
		if !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 200 || team.HintOf(err) == "" {
			t.Errorf("%s: %v (%s), want %q", name, err, team.HintOf(err), tt.want)
		}
	}
}

// Whatever comes as a cursor is refused, or is written just as it was read.
func FuzzCursor(f *testing.F) {
	f.Add([]byte{})
	for _, p := range []Place{{}, {{seq: 300, given: 2, made: 7}, {seq: 1}, {seq: 2}, {seq: 1 << 63}}} {
		raw, _ := base64.RawURLEncoding.DecodeString(string(p.Cursor("t")))
		f.Add(raw[:len(raw)-checksumBytes])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range []Cursor{Cursor(b), Cursor(sealed(b))} {
			p, err := c.Place("t")
			switch {
			case err != nil && !errors.Is(err, team.InvalidArgument):
				t.Errorf("%q: %v", c, err)
			case err == nil && c != "" && p.Cursor("t") != c:
				t.Errorf("%q is written as %q", c, p.Cursor("t"))
			}
		}
	})
}
