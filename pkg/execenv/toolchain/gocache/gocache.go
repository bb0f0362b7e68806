// Package gocache implements a build cache for the go command with two layers: a folder that is written, and the user's, which is
// only read. Both have the layout of the go command, so a toolchain without support for such caches uses the first layer alone.
//
// The go command of a sandbox starts this program again, by [Command], and uses it by the protocol of GOCACHEPROG (Go 1.24 and
// newer). The program has the rights of that command. It trims nothing: the process that owns the folder does.
package gocache

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// argument is the first argument of a process that serves the go command. The second is the user's cache.
const argument = "agentteam-go-cache"

func init() {
	if len(os.Args) != 3 || os.Args[1] != argument {
		return
	}
	if err := serve(os.Stdin, os.Stdout, os.Getenv("GOCACHE"), os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, argument+":", err)
		syscall.Exit(1)
	}
	syscall.Exit(0) // os.Exit would wait for the race detector
}

// Command returns the value of GOCACHEPROG with which program serves the go command over a user's cache; "" if the go command could
// not parse it.
func Command(program, user string) string {
	var words []string
	for _, word := range []string{program, argument, user} {
		quote := "'"
		if strings.Contains(word, quote) {
			quote = `"`
		}
		if strings.Contains(word, quote) {
			return ""
		}
		words = append(words, quote+word+quote)
	}
	return strings.Join(words, " ")
}

// request and response are those of cmd/go/internal/cacheprog. Byte slices are base64 in JSON.
type request struct {
	ID                 int64
	Command            string
	ActionID, OutputID []byte
	BodySize           int64
}

type response struct {
	ID            int64
	Err           string     `json:",omitempty"`
	KnownCommands []string   `json:",omitempty"`
	Miss          bool       `json:",omitempty"`
	OutputID      []byte     `json:",omitempty"`
	Size          int64      `json:",omitempty"`
	Time          *time.Time `json:",omitempty"`
	DiskPath      string     `json:",omitempty"`
}

// serve answers requests until the go command closes the cache, or in ends. own is written, user is only read and may be missing.
// Error: a malformed request; the error of an entry is in its answer.
func serve(in io.Reader, out io.Writer, own, user string) error {
	if !filepath.IsAbs(own) {
		return fmt.Errorf("GOCACHE is %q, want an absolute path", own)
	}
	requests, answer := json.NewDecoder(in), json.NewEncoder(out)
	if err := answer.Encode(response{KnownCommands: []string{"get", "put", "close"}}); err != nil {
		return err
	}
	for {
		var q request
		if err := requests.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("a request: %w", err)
		}
		var a response
		switch q.Command {
		case "get":
			a = get(q, own, user)
		case "put":
			var body []byte // follows its request
			if q.BodySize > 0 {
				if err := requests.Decode(&body); err != nil {
					return fmt.Errorf("a body: %w", err)
				}
			}
			a = put(q, body, own)
		case "close":
		default:
			a.Err = "unknown command " + q.Command
		}
		a.ID = q.ID
		if err := answer.Encode(a); err != nil || q.Command == "close" {
			return err
		}
	}
}

// get looks for an entry in both layers.
func get(q request, own, user string) response {
	for _, layer := range []string{own, user} {
		if a, ok := read(layer, q.ActionID); ok {
			if layer == own {
				used(filepath.Join(own, entryName(q.ActionID, "a")))
				used(a.DiskPath)
			}
			return a
		}
	}
	return response{Miss: true}
}

// used marks a file as used, for the process that removes the oldest ones. It is only as exact as the go command.
func used(name string) {
	if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
		_ = os.Chtimes(name, time.Time{}, time.Now()) // it is removed earlier, and made again
	}
}

// entryName returns the go command's name of the entry of an action ("a"), or of an output ("d").
func entryName(id []byte, kind string) string {
	name := hex.EncodeToString(id)
	return filepath.Join(name[:2], name+"-"+kind)
}

// read returns the entry of an action in a layer, if it is complete.
func read(layer string, action []byte) (response, bool) {
	if len(action) != sha256.Size {
		return response{}, false
	}
	text, err := os.ReadFile(filepath.Join(layer, entryName(action, "a")))
	if err != nil || len(text) > 1<<10 {
		return response{}, false
	}
	var version, id, output string
	var size, nanoseconds int64
	if n, err := fmt.Sscan(string(text), &version, &id, &output, &size, &nanoseconds); err != nil || n != 5 || version != "v1" || id != hex.EncodeToString(action) {
		return response{}, false
	}
	made, err := hex.DecodeString(output)
	if err != nil || len(made) != sha256.Size {
		return response{}, false
	}
	at := filepath.Join(layer, entryName(made, "d"))
	info, err := os.Stat(at)
	if err != nil || !info.Mode().IsRegular() || info.Size() != size {
		return response{}, false
	}
	when := time.Unix(0, nanoseconds)
	return response{OutputID: made, Size: size, Time: &when, DiskPath: at}, true
}

// put stores the output of an action, before the entry that names it.
func put(q request, body []byte, own string) response {
	if sum := sha256.Sum256(body); len(q.ActionID) != sha256.Size || !bytes.Equal(sum[:], q.OutputID) || q.BodySize != int64(len(body)) {
		return response{Err: "what was made is not that of its id"}
	}
	made := filepath.Join(own, entryName(q.OutputID, "d"))
	entry := fmt.Sprintf("v1 %x %x %20d %20d\n", q.ActionID, q.OutputID, q.BodySize, time.Now().UnixNano())
	err := write(made, body)
	if err == nil {
		err = write(filepath.Join(own, entryName(q.ActionID, "a")), []byte(entry))
	}
	if err != nil {
		return response{Err: err.Error()}
	}
	return response{DiskPath: made}
}

// write replaces a file in one step.
func write(name string, text []byte) error {
	next := filepath.Join(filepath.Dir(name), rand.Text()+".new")
	err := os.MkdirAll(filepath.Dir(name), 0o777)
	if err == nil {
		err = os.WriteFile(next, text, 0o666)
	}
	if err == nil {
		err = os.Rename(next, name)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}
