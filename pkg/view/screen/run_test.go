package screen

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
)

// A panic beside the screen ends it, and then only shows itself: on a terminal that is as it was.
func TestPanicLeavesTheTerminal(t *testing.T) {
	far, near, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	settings := func() unix.Termios {
		is, err := unix.IoctlGetTermios(int(near.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return *is
	}
	var shown bytes.Buffer
	read, drawn := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		part := make([]byte, 4096)
		for seen := false; ; { // until the near end is closed
			n, err := far.Read(part)
			if err != nil {
				return
			}
			if shown.Write(part[:n]); !seen && strings.Contains(shown.String(), "there are no teams yet") {
				seen = true
				close(drawn)
			}
		}
	}()
	before := settings()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		m := newModel(&stage{}, nil, time.UTC, Leave{})
		m.teams = []client.TeamStatus{}
		b := &backend{}
		_ = b.show(t.Context(), m, Options{In: near, Out: near, Env: append(os.Environ(), "TERM=xterm-256color")}, func(context.Context) {
			select {
			case <-drawn:
			case <-time.After(brokertest.Longest):
				t.Error("the screen is not drawn")
			}
			panic("beside the screen")
		})
	}()
	if now := settings(); !reflect.DeepEqual(now, before) {
		t.Errorf("the terminal is set to %+v, before to %+v", now, before)
	}
	near.Close()
	brokertest.Receive(t, "the terminal is left", read)
	far.Close()
	if text := shown.String(); !strings.Contains(text, "\x1b[?1049h") || strings.Count(text, "\x1b[?1049h") != strings.Count(text, "\x1b[?1049l") || strings.LastIndex(text, "\x1b[?25h") < strings.LastIndex(text, "\x1b[?25l") {
		t.Errorf("the terminal is left on the other screen, or without a cursor:\n%q", text)
	}
}
