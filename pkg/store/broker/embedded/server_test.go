package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
)

func TestStartErrors(t *testing.T) {
	s, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	var taken int
	if _, err := fmt.Sscanf(s.URL(), "nats://127.0.0.1:%d", &taken); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]embedded.Options{
		"a port in use":        {Dir: t.TempDir(), Port: taken},
		"an unwritable folder": {Dir: "/proc/none/such"},
	} {
		if _, err := embedded.Start(o); !errors.Is(err, team.InvalidState) || team.HintOf(err) == "" {
			t.Errorf("%s: %v (hint %q), want invalid_state with a hint", name, err, team.HintOf(err))
		}
	}
}

// Two servers on one store would destroy it: the second one does not start, and
// says who has the folder.
func TestOneServerPerFolder(t *testing.T) {
	dir := t.TempDir()
	s, err := embedded.Start(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Start(embedded.Options{Dir: dir})
	if !errors.Is(err, embedded.ErrInUse) || !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), fmt.Sprintf("by process %d", os.Getpid())) {
		t.Errorf("a second server in the folder: %v", err)
	}
	s.Shutdown()
	if s, err = embedded.Start(embedded.Options{Dir: dir}); err != nil {
		t.Fatalf("after the first one's end: %v", err)
	}
	s.Shutdown()
}
