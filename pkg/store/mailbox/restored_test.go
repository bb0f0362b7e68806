package mailbox_test

import (
	"fmt"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// A stream that was restored from an older copy uses the sequences again that its reader has
// read. What is sent from then on is heard, and nothing twice: by a reader that lives through
// it, and by one that comes later, whether the stream has passed the old end by then or not.
func TestRestoredMail(t *testing.T) {
	t.Parallel()
	name, _ := subject.Messages("t")
	for _, tt := range []struct {
		name   string
		lives  bool // the reader is there while the server is restarted
		kept   int  // messages that the older copy has; all were read
		lost   int  // messages that were read and are not in it
		before int  // sent before the reader is back
		others int  // of other members before that
	}{
		{"comes back first", false, 3, 6, 0, 0},
		{"comes back below the old end", false, 3, 6, 2, 0},
		{"comes back at the old end", false, 2, 3, 3, 0},
		{"comes back above the old end", false, 3, 2, 7, 0},
		{"comes back when others have passed it", false, 3, 2, 1, 5},
		{"one is lost", false, 4, 1, 0, 0},
		{"all are lost", false, 0, 4, 1, 0},
		{"nothing is lost", false, 3, 0, 2, 0},
		{"lives", true, 3, 6, 0, 0},
		{"lives, all are lost", true, 0, 4, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := brokertest.NewRestorable(t)
			bt, err := brokertest.Connect(t, srv.URL()).Make(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			b := mailbox.New(bt, mailbox.Options{Members: crew})
			in := receive(t, b, "coder-1", 1, 1)
			said := 0
			hear := func(n int) {
				t.Helper()
				for range n {
					said++
					send(t, b, team.Leader, "coder-1", fmt.Sprint("m", said))
					in.next(fmt.Sprint("m", said))
				}
			}
			hear(tt.kept)
			srv.Keep(name)
			hear(tt.lost)
			if !tt.lives {
				in.end()
			}
			srv.Restore(name, nil)
			if tt.others > 0 {
				send(t, b, team.Leader, "coder-1", "first")
			}
			for range tt.others {
				send(t, b, team.Leader, "tester-1", "for another")
			}
			for n := range tt.before - min(tt.others, 1) {
				send(t, b, team.Leader, "coder-1", fmt.Sprint("before ", n))
			}
			if !tt.lives {
				taken := in.taken
				in = receiveBehind(t, b, "coder-1", 2, taken)
			}
			if tt.others > 0 {
				in.next("first")
			}
			for n := range tt.before - min(tt.others, 1) {
				in.next(fmt.Sprint("before ", n))
			}
			hear(3)
			in.end()
		})
	}
}

// A member that has read nothing yet, and joined a stream that has lost its end since, hears
// what is sent to it.
func TestRestoredBeforeFirstMail(t *testing.T) {
	t.Parallel()
	name, _ := subject.Messages("t")
	srv := brokertest.NewRestorable(t)
	bt, err := brokertest.Connect(t, srv.URL()).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	b := mailbox.New(bt, mailbox.Options{Members: crew})
	send(t, b, team.Leader, "tester-1", "kept")
	srv.Keep(name)
	for range 4 {
		send(t, b, team.Leader, "tester-1", "lost")
	}
	srv.Restore(name, nil)
	in := receive(t, b, "coder-1", 1, 6)
	send(t, b, team.Leader, "coder-1", "hello")
	in.next("hello")
	in.end()
}
