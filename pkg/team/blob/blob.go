// Package blob stores texts that are too large for a message: whole and once in the
// team's object store, by the hash of their content. A reader gets the head, the tail
// and the reference of such a text, and can read the rest on any host.
//
// The texts go with the team's object store. The sender decides which text is too
// large. The tool read_file reads the texts by lines, as [LineLen] counts them.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"agentteam/pkg/team"
)

// Files is the part of a team's object store that Texts needs; *broker.Files implements it.
type Files interface {
	// Digest returns the digest of a file as Put does. Errors: NotFound; Unavailable.
	Digest(ctx context.Context, name string) (string, error)
	// Put stores what r holds and returns "sha256:" and the hex digest of its bytes.
	Put(ctx context.Context, name string, r io.ReadSeeker) (string, error)
	// Open opens a file for reading until ctx ends. Errors: NotFound; Unavailable.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
}

// Texts are the stored texts of a team. Safe for concurrent use.
type Texts struct{ files Files }

// In returns the texts that are kept in files.
func In(files Files) *Texts { return &Texts{files} }

// scheme begins a reference.
const scheme = "stored:"

// IsRef reports whether s begins as a reference to a stored text does; it may be malformed or dangling.
func IsRef(s string) bool { return strings.HasPrefix(s, scheme) }

// Put stores text and returns its reference, "stored:" and the SHA-256 of its bytes in hex. It does not write
// a text again that is stored already. It blocks until the server has answered or ctx ends. Errors:
// Unavailable.
func (t *Texts) Put(ctx context.Context, text string) (ref string, err error) {
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	have, err := t.files.Digest(ctx, name(digest))
	if errors.Is(err, team.NotFound) || err == nil && have != "sha256:"+digest {
		_, err = t.files.Put(ctx, name(digest), strings.NewReader(text))
	}
	if err != nil {
		return "", err
	}
	return scheme + digest, nil
}

// Open opens a text for reading until ctx ends; the caller closes it. The digest is checked at the end of the
// text: until then Read may fail with Unavailable. Errors: InvalidArgument for a malformed reference;
// NotFound; Unavailable.
func (t *Texts) Open(ctx context.Context, ref string) (io.ReadCloser, error) {
	digest, err := parse(ref)
	if err != nil {
		return nil, err
	}
	r, err := t.files.Open(ctx, name(digest))
	if errors.Is(err, team.NotFound) {
		return nil, team.Errorf(team.NotFound, "there is no stored text %s", ref).
			WithHint("a text is kept as long as its team: take the reference as it was given, from this team")
	}
	return r, err
}

// Get returns a whole text. Errors: as Open.
func (t *Texts) Get(ctx context.Context, ref string) (string, error) {
	r, err := t.Open(ctx, ref)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	_, err = io.Copy(&text, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return "", err
	}
	return text.String(), nil
}

// parse returns the digest in a reference.
func parse(ref string) (digest string, err error) {
	digest, ok := strings.CutPrefix(ref, scheme)
	if sum, err := hex.DecodeString(digest); !ok || err != nil || len(sum) != sha256.Size || digest != strings.ToLower(digest) {
		return "", team.Errorf(team.InvalidArgument, "%.100q is no reference to a stored text", ref).
			WithHint("one is %s and %d hex digits; copy it as it was given", scheme, 2*sha256.Size)
	}
	return digest, nil
}

// name returns the name of a text in the object store.
func name(digest string) string { return "stored/" + digest }
