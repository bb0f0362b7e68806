package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// Load makes the team of a save on this server, as it was: at work if it had a goal under way. It
// is led, and listed as usual, only once it is complete. A load that was killed can be repeated,
// which takes some seconds.
//
// Errors: Conflict if there is a team of that name, or another process is loading one; Unavailable;
// InvalidArgument if the file has changed since it was opened. After an error nothing remains of
// it, unless the error names it.
func (s *Store) Load(ctx context.Context, f *File) (t team.Team, err error) {
	l, err := s.registry.Load(ctx, f.Head.Team)
	if err != nil {
		return t, err
	}
	var begun []string
	err = l.Hold(ctx, func(ctx context.Context) (team.Team, error) {
		if l.Repeated {
			if err := s.conn.Remove(ctx, f.Head.Team); err != nil {
				return t, err
			}
		}
		for _, p := range f.Parts {
			err := s.restore(ctx, f, p)
			if !errors.Is(err, team.Conflict) { // else the stream is not of this load
				begun = append(begun, p.Stream)
			}
			if err != nil {
				return t, err
			}
		}
		t, err = l.Settle(ctx, team.Loaded{Save: f.Head.ID, Copy: f.Head.Copy, From: f.Head.Server})
		return t, err
	})
	if err != nil {
		return t, errors.Join(err, l.Forget(ctx, begun))
	}
	return t, nil
}

// restore makes one stream.
func (s *Store) restore(ctx context.Context, f *File, p Part) error {
	all := broker.Streams(f.Head.Team)
	config := all[slices.Index(names(f.Head.Team), p.Stream)]
	var made time.Time // a reader of the copied team knows positions that the copy has not reached
	if !f.Head.Copy {
		made = p.Made
	}
	sum := sha256.New()
	if err := s.conn.Restore(ctx, config, made, io.TeeReader(f.open(p), sum)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
		return team.Errorf(team.InvalidArgument, "the file was changed while it was loaded")
	}
	return nil
}
