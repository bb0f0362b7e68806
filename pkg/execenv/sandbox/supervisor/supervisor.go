// Package supervisor is the process that runs one command of a sandbox: this program, started again under [Name]. It confines the
// command if package sandbox requires it, counts the resources of its processes, and ends all of them: with the command, at a limit,
// when its time is over, and when the process that started it is gone.
//
// It imports little, so that its init, which never returns in a supervisor, runs before those of most other packages.
package supervisor

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"
	"time"
)

// Name is the first argument of a supervisor process.
const Name = "agentteam-sandbox"

// Environ is the only variable of a supervisor, which bounds its threads. Its command does not get it.
const Environ = "GOMAXPROCS=2"

// The file descriptors of a supervisor. From the first it reads a [Spec] and then how long the command may still run; at its end
// everything is killed. It writes a [Report] to the second. The third is the Landlock ruleset of a confined command, or the unix socket to which a gate
// hands out.
const (
	controlFD = 3
	reportFD  = 4
	moreFD    = 5
)

// Spec is a command, and its bounds.
type Spec struct {
	Args  []string // a program, by its path or to find in PATH of Env, and its arguments
	Env   []string // all of it, "NAME=value" each
	Under []string // a program by its path, and arguments, that runs Args and sets its environment; empty: none does
	Files [][]byte // what the file descriptors from 3 on contain
	Open  []string // paths of files that are open for reading from the descriptor after these on; what cannot be opened is empty
	Gate  bool     // whether a socket on [ProxyAddress] is handed out; Under gives the command a network namespace

	Memory    int64 // bytes of all processes together
	Processes int
	Threads   int   // of all processes together
	FileSize  int64 // bytes of each file

	Confined bool   // by the supervisor, before the command starts: else it is not, or Under does it
	Filter   []byte // of a confined command's system calls, as instructions of struct sock_filter
}

// ProxyAddress is the address of the proxy in the command's own network namespace.
const ProxyAddress = "127.0.0.1:3128"

const proxyPort = 3128

// Report states how a command has ended.
type Report struct {
	Code   int    // its exit status; -1 if a signal ended it
	How    string // "exit status 3", "signal: killed"
	Ended  End    // why the supervisor ended it
	Failed string // why the command could not be started
}

// End states why a supervisor ended a command.
type End string

// The reasons.
const (
	ByItself  End = ""
	Ordered   End = "ordered" // the time is over, or its owner is gone
	Memory    End = "memory"
	Processes End = "processes"
	Threads   End = "threads"
	FileSize  End = "file size"
)

// A message is its length and texts, each with its length; a list is its length, as a text, and its texts. Lengths have 32 bits.
// JSON's package, and the many before it, would be initialised in each supervisor.

var errCut = errors.New("a message is cut off")

// send writes a message.
func send(w io.Writer, texts ...string) error {
	out := make([]byte, 4)
	for _, text := range texts {
		out = append(binary.NativeEndian.AppendUint32(out, uint32(len(text))), text...)
	}
	if len(out) > math.MaxInt32 {
		return errors.New("a message is too large")
	}
	binary.NativeEndian.PutUint32(out, uint32(len(out)-4))
	_, err := w.Write(out)
	return err
}

// message is the unread part of a received message. err is the error of the first malformed text.
type message struct {
	in  []byte
	err error
}

// receive reads a message; its err is [io.EOF] if there is none.
func receive(r io.Reader) *message {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return &message{err: err}
	}
	size := int64(binary.NativeEndian.Uint32(head[:]))
	in, err := io.ReadAll(io.LimitReader(r, size))
	if err == nil && int64(len(in)) < size {
		err = errCut
	}
	return &message{in, err}
}

func (m *message) text() string {
	if m.err == nil && (len(m.in) < 4 || uint64(len(m.in)-4) < uint64(binary.NativeEndian.Uint32(m.in))) {
		m.err = errCut
	}
	if m.err != nil {
		return ""
	}
	end := 4 + int(binary.NativeEndian.Uint32(m.in))
	text := string(m.in[4:end])
	m.in = m.in[end:]
	return text
}

func (m *message) number() int64 {
	n, err := strconv.ParseInt(m.text(), 10, 64)
	if m.err == nil {
		m.err = err
	}
	return n
}

func (m *message) list() (all []string) {
	for n := m.number(); n > 0 && m.err == nil; n-- {
		all = append(all, m.text())
	}
	return all
}

func digits[N ~int | ~int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// Send writes a command to its supervisor.
func (s Spec) Send(w io.Writer) error {
	files := make([]string, len(s.Files))
	for i, f := range s.Files {
		files[i] = string(f)
	}
	texts := []string{strconv.FormatBool(s.Gate), digits(s.Memory), digits(s.Processes), digits(s.Threads), digits(s.FileSize), string(s.Filter), strconv.FormatBool(s.Confined)}
	for _, list := range [][]string{s.Args, s.Env, s.Under, s.Open, files} {
		texts = append(append(texts, digits(len(list))), list...)
	}
	return send(w, texts...)
}

// receiveSpec reads a command.
func receiveSpec(r io.Reader) (s Spec, err error) {
	m := receive(r)
	s = Spec{Gate: m.text() == "true", Memory: m.number(), Processes: int(m.number()), Threads: int(m.number()), FileSize: m.number(), Filter: []byte(m.text()), Confined: m.text() == "true",
		Args: m.list(), Env: m.list(), Under: m.list(), Open: m.list()}
	for _, f := range m.list() {
		s.Files = append(s.Files, []byte(f))
	}
	if m.err == nil && len(s.Args) == 0 {
		m.err = errCut
	}
	return s, m.err
}

// SendLeft sends a supervisor the time that its command may still run.
func SendLeft(w io.Writer, left time.Duration) error { return send(w, digits(left)) }

func receiveLeft(r io.Reader) (time.Duration, error) {
	m := receive(r)
	left := time.Duration(m.number())
	return left, m.err
}

func (r Report) send(w io.Writer) error {
	return send(w, digits(r.Code), r.How, string(r.Ended), r.Failed)
}

// ReceiveReport waits for the report of a supervisor. Errors: [io.EOF] if it ended without one.
func ReceiveReport(from io.Reader) (r Report, err error) {
	m := receive(from)
	r = Report{Code: int(m.number()), How: m.text(), Ended: End(m.text()), Failed: m.text()}
	return r, m.err
}
