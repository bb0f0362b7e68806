package safefs_test

import (
	"errors"
	"slices"
	"testing"

	"agentteam/pkg/tool/safefs"
)

// A path is followed by each link in turn, and ".." leads up from where a link leads.
func TestWay(t *testing.T) {
	links := map[string]string{"/home/a": "/data/a", "/data/a/up": "sub/..", "/ring": "ring", "/data/x": "../home/a/f"}
	readlink := func(at string) (string, error) {
		if to, ok := links[at]; ok {
			return to, nil
		}
		return "", errors.New("no link")
	}
	for path, want := range map[string]struct{ steps, names []string }{
		"/home/b":      {[]string{"/home/b"}, []string{"/home/b"}},
		"/home/a/f":    {[]string{"/home/a", "/data/a/f"}, []string{"/home/a/f", "/data/a/f"}},
		"/home/a/../f": {[]string{"/home/a", "/data/a", "/data/f"}, []string{"/home/f", "/data/f"}},
		"/home/a/up/f": {[]string{"/home/a", "/data/a/up", "/data/a/sub", "/data/a/f"}, []string{"/home/a/up/f", "/data/a/up/f", "/data/a/f"}},
		"/data/x":      {[]string{"/data/x", "/data", "/home/a", "/data/a/f"}, []string{"/data/x", "/data/a/f"}},
	} {
		steps, names := safefs.Way(readlink, path)
		if !slices.Equal(steps, want.steps) || !slices.Equal(names, want.names) {
			t.Errorf("%s: %q, %q, want %q, %q", path, steps, names, want.steps, want.names)
		}
	}
	if steps, _ := safefs.Way(readlink, "/ring"); len(steps) != 41 || steps[40] != "/ring" {
		t.Errorf("a ring of links: %q", steps)
	}
}
