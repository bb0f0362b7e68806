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
	Files []string // what the file descriptors from 3 on contain
	Open  []string // paths of files that are open for reading from the descriptor after these on; what cannot be opened is empty
	Gate  bool     // whether a socket on [ProxyAddress] is handed out; Under gives the command a network namespace

	Memory    int64 // bytes of all processes together
	Processes int64
	Threads   int64 // of all processes together
	FileSize  int64 // bytes of each file

	Confined bool   // by the supervisor, before the command starts: else it is not, or Under does it
	Filter   string // of a confined command's system calls, as instructions of struct sock_filter
}

// ProxyAddress is the address of the proxy in the command's own network namespace.
const ProxyAddress = "127.0.0.1:3128"

const proxyPort = 3128

// Report states how a command has ended.
type Report struct {
	Code   int64  // its exit status; -1 if a signal ended it
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

// A message is its length and its fields: each is a text behind its length, a list is a number and its texts. Lengths have 32 bits.
// JSON's package, and the many before it, would be initialised in each supervisor.

var errCut = errors.New("a message is cut off")

// send writes a message of fields, which are pointers.
func send(w io.Writer, fields ...any) error {
	out := make([]byte, 4)
	add := func(text string) { out = append(binary.NativeEndian.AppendUint32(out, uint32(len(text))), text...) }
	for _, f := range fields {
		switch f := f.(type) {
		case *string:
			add(*f)
		case *int64:
			add(strconv.FormatInt(*f, 10))
		case *bool:
			add(strconv.FormatBool(*f))
		case *[]string:
			add(strconv.Itoa(len(*f)))
			for _, text := range *f {
				add(text)
			}
		}
	}
	if len(out) > math.MaxInt32 {
		return errors.New("a message is too large")
	}
	binary.NativeEndian.PutUint32(out, uint32(len(out)-4))
	_, err := w.Write(out)
	return err
}

// receive reads a message into fields. Error: [io.EOF] if there is none.
func receive(r io.Reader, fields ...any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	in, err := io.ReadAll(io.LimitReader(r, int64(binary.NativeEndian.Uint32(head[:]))))
	next := func() (text string) {
		if err == nil && (len(in) < 4 || uint64(len(in)-4) < uint64(binary.NativeEndian.Uint32(in))) {
			err = errCut
		}
		if err == nil {
			end := 4 + int(binary.NativeEndian.Uint32(in))
			text, in = string(in[4:end]), in[end:]
		}
		return text
	}
	number := func() (n int64) {
		if text := next(); err == nil {
			n, err = strconv.ParseInt(text, 10, 64)
		}
		return n
	}
	for _, f := range fields {
		switch f := f.(type) {
		case *string:
			*f = next()
		case *int64:
			*f = number()
		case *bool:
			*f = next() == "true"
		case *[]string:
			for n := number(); n > 0 && err == nil; n-- {
				*f = append(*f, next())
			}
		}
	}
	return err
}

func (s *Spec) fields() []any {
	return []any{&s.Args, &s.Env, &s.Under, &s.Files, &s.Open, &s.Gate, &s.Memory, &s.Processes, &s.Threads, &s.FileSize, &s.Confined, &s.Filter}
}

func (r *Report) fields() []any { return []any{&r.Code, &r.How, (*string)(&r.Ended), &r.Failed} }

// Send writes a command to its supervisor.
func (s Spec) Send(w io.Writer) error { return send(w, s.fields()...) }

// receiveSpec reads a command.
func receiveSpec(r io.Reader) (s Spec, err error) {
	if err = receive(r, s.fields()...); err == nil && len(s.Args) == 0 {
		err = errCut
	}
	return s, err
}

// SendLeft sends a supervisor the time that its command may still run.
func SendLeft(w io.Writer, left time.Duration) error { return send(w, (*int64)(&left)) }

func receiveLeft(r io.Reader) (left time.Duration, err error) {
	err = receive(r, (*int64)(&left))
	return left, err
}

func (r Report) send(w io.Writer) error { return send(w, r.fields()...) }

// ReceiveReport waits for the report of a supervisor. Errors: [io.EOF] if it ended without one.
func ReceiveReport(from io.Reader) (r Report, err error) {
	err = receive(from, r.fields()...)
	return r, err
}
