package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// gate is a way to NATS on which the first completion of every task is held up: its
// writer is in the middle of completing for as long as a test likes.
type gate struct {
	url    string
	server string
	held   chan completion
	ended  chan struct{} // nothing is held any more

	mu    sync.Mutex
	known map[string]bool // subjects of tasks whose first completion has come
	conns []net.Conn
}

// completion is a task's completion on its way from its writer to the server.
type completion struct {
	task  team.Task // as it would be stored
	reply string    // where the server answers
	pass  chan struct{}
}

// newGate opens a gate before the server until the test ends.
func newGate(t *testing.T, server string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{url: "nats://" + l.Addr().String(), server: strings.TrimPrefix(server, "nats://"),
		held: make(chan completion, 100), ended: make(chan struct{}), known: map[string]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { g.serve(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.mu.Lock()
		for _, c := range g.conns {
			c.Close()
		}
		g.mu.Unlock()
		serving.Wait()
	})
	return g
}

// open lets everything through from now on.
func (g *gate) open() { close(g.ended) }

func (g *gate) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", g.server)
	if err != nil {
		return
	}
	defer server.Close()
	g.mu.Lock()
	g.conns = append(g.conns, client, server)
	g.mu.Unlock()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	g.forward(server, bufio.NewReader(client))
	server.Close()
	<-back
}

// forward hands on what a client says, one operation of the NATS protocol after the
// other, until either end is gone.
func (g *gate) forward(to io.Writer, from *bufio.Reader) {
	for {
		op, err := from.ReadBytes('\n')
		if err != nil {
			return
		}
		if words := strings.Fields(string(op)); len(words) > 2 && (words[0] == "PUB" || words[0] == "HPUB") {
			size, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return
			}
			head := len(op)
			op = append(op, make([]byte, size+len("\r\n"))...)
			if _, err := io.ReadFull(from, op[head:]); err != nil {
				return
			}
			g.hold(words, op[head:head+size])
		}
		if _, err := to.Write(op); err != nil {
			return
		}
	}
}

// hold returns at once, unless what is published, with headers and asking for an
// answer, is a task's first completion.
func (g *gate) hold(words []string, payload []byte) {
	if len(words) != 5 || !strings.Contains(words[1], "."+subject.KeyTask("")) {
		return
	}
	headers, err := strconv.Atoi(words[3])
	c := completion{reply: words[2], pass: make(chan struct{})}
	if err != nil || json.Unmarshal(payload[headers:], &c.task) != nil || c.task.Status != team.Completed {
		return
	}
	g.mu.Lock()
	again := g.known[words[1]]
	g.known[words[1]] = true
	g.mu.Unlock()
	if again {
		return
	}
	g.held <- c
	select {
	case <-c.pass:
	case <-g.ended:
	}
}

// next waits for the next completion that is held up.
func (g *gate) next(t *testing.T) completion {
	t.Helper()
	select {
	case c := <-g.held:
		return c
	case <-time.After(limit):
		t.Fatalf("waited %v in vain: nobody completes", limit)
		return completion{}
	}
}
