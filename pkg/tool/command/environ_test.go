package command

import (
	"slices"
	"testing"
)

func TestEnvironLetsNothingElseThrough(t *testing.T) {
	got := Environ([]string{"SECRET=1", "PATH=/bin", "TERM=xterm", "PATHS=1", "path=1", "=", "", "HOME=", "leak"})
	if want := []string{"PATH=/bin", "HOME=", "TERM=dumb"}; !slices.Equal(got, want) {
		t.Errorf("Environ = %q, want %q", got, want)
	}
}
