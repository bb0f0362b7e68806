package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Storage is the storage of one team: its three streams, its bucket, its files.
type Storage struct {
	ID       team.TeamID
	Conn     *Conn
	Messages *Stream // mail
	Events   *Stream // what agents did
	Logs     *Stream // conversations
	Bucket   *Bucket // team record, members, tasks
	Files    *Files  // deliverables
}

const (
	history     = 64 // values kept of each key; also what a reader behind can still catch up on
	eventAge    = 7 * 24 * time.Hour
	eventBytes  = 64 << 20 // reserved on disk when the stream is made, so not more than is needed
	dedupWindow = 2 * time.Minute
)

// Streams returns the configurations of a team's streams. That of the files, to which all others refer, is the last. Mail and
// conversations have no limit of age or size and refuse new writes when the disk is full: nothing expires silently. Events
// are a log that may drop its oldest entries.
func Streams(id team.TeamID) []jetstream.StreamConfig {
	msg, msgSubjects := subject.Messages(id)
	evt, evtSubjects := subject.Events(id)
	log, logSubjects := subject.Logs(id)
	all := []jetstream.StreamConfig{
		{Name: msg, Subjects: msgSubjects, Discard: jetstream.DiscardNew, Duplicates: dedupWindow},
		{Name: evt, Subjects: evtSubjects, Discard: jetstream.DiscardOld, MaxAge: eventAge, MaxBytes: eventBytes, Duplicates: dedupWindow},
		{Name: log, Subjects: logSubjects, Discard: jetstream.DiscardNew, Duplicates: dedupWindow},
		bucketConfig(subject.Bucket(id)),
		{Name: filesStream(id), Subjects: []string{"$O." + subject.Files(id) + ".C.>", "$O." + subject.Files(id) + ".M.>"},
			Discard: jetstream.DiscardNew, AllowRollup: true, AllowDirect: true},
	}
	for i := range all {
		all[i].Metadata = map[string]string{protocolMark: strconv.Itoa(team.Protocol)}
	}
	return all
}

// protocolMark is the key in a stream's metadata for the protocol version of the programs that use the stream. Version 1 did
// not mark its streams.
const protocolMark = "agentteam-protocol"

func filesStream(id team.TeamID) string { return "OBJ_" + subject.Files(id) }

// bucketConfig returns the configuration of a KV bucket without AllowDirect: a replica that is behind may answer a direct
// get, also right after one's own write.
func bucketConfig(bucket string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + bucket, Subjects: []string{"$KV." + bucket + ".>"},
		MaxMsgsPerSubject: history, Discard: jetstream.DiscardNew,
		AllowRollup: true, DenyDelete: true, Duplicates: dedupWindow,
		Metadata: map[string]string{protocolMark: strconv.Itoa(team.Protocol)},
	}
}

// Make makes the team's missing streams and opens the team. It is idempotent, and concurrent makers agree. Errors:
// InvalidState if a stream of that name exists with another configuration; Unavailable.
func (c *Conn) Make(ctx context.Context, id team.TeamID) (*Storage, error) {
	for _, cfg := range Streams(id) {
		if err := c.makeStream(ctx, cfg); err != nil {
			return nil, err
		}
	}
	return c.Open(ctx, id)
}

// Open opens an existing team. A missing stream is an error (InvalidState), never made again: its data is lost. Callers that
// open one team at the same time share the requests: a thousand readers that return together would send more than a busy
// server answers in time, and ask again.
func (c *Conn) Open(ctx context.Context, id team.TeamID) (*Storage, error) {
	for {
		opened := c.opening.DoChan(string(id), func() (any, error) {
			shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTime)
			defer cancel()
			return c.open(shared, id)
		})
		select {
		case r := <-opened:
			if errors.Is(r.Err, context.DeadlineExceeded) && ctx.Err() == nil {
				continue // of the shared requests; a caller with more time asks again
			}
			if r.Shared && errors.Is(r.Err, errGone) {
				return c.open(ctx, id) // it may have been made after the requests
			}
			t, _ := r.Val.(*Storage)
			return t, r.Err
		case <-ctx.Done():
			return nil, backoff(ctx, ctx.Err(), "open team "+string(id))
		}
	}
}

// openTime is the time for which callers share requests before a caller that still waits makes new ones.
const openTime = 10 * callTimeout

func (c *Conn) open(ctx context.Context, id team.TeamID) (*Storage, error) {
	t := &Storage{ID: id, Conn: c}
	streams := make([]*Stream, 0, 5)
	for _, cfg := range Streams(id) {
		s, err := c.openStream(ctx, cfg)
		if err != nil {
			return nil, err
		}
		streams = append(streams, s)
	}
	t.Messages, t.Events, t.Logs = streams[0], streams[1], streams[2]
	t.Files = &Files{streams[4], subject.Files(id)}
	t.Bucket = &Bucket{Stream: streams[3], prefix: "$KV." + subject.Bucket(id) + "."}
	return t, nil
}

// Remove deletes the team's storage and all its content. A missing stream is not an error, so Remove can be repeated. Errors:
// Unavailable, and then part of it may be left.
func (c *Conn) Remove(ctx context.Context, id team.TeamID) error {
	for _, cfg := range Streams(id) {
		if err := c.RemoveStream(ctx, cfg.Name); err != nil {
			return err
		}
	}
	return nil
}

// RemoveStream deletes a stream of a team, if it is there. Errors: Unavailable.
func (c *Conn) RemoveStream(ctx context.Context, name string) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*callTimeout)
		err := c.js.DeleteStream(attempt, name)
		cancel()
		if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		if err := backoff(ctx, err, "delete stream "+name); err != nil {
			return err
		}
	}
}

// Registry opens the bucket of all teams, and makes it on a server without any data of agentteam. A server with a team's
// storage had the bucket before: if it is gone then, that is an error (InvalidState), as for a team's own in [Conn.Open].
func (c *Conn) Registry(ctx context.Context) (*Bucket, error) {
	cfg := bucketConfig(subject.Registry)
	cfg.MaxMsgsPerSubject = 8 // leases are renewed every few seconds; a list being read must still find the one before
	s, err := c.openStream(ctx, cfg)
	for errors.Is(err, errGone) {
		var left team.TeamID
		if left, err = c.anyTeam(ctx); err != nil {
			return nil, err
		}
		if left == "" {
			if err = c.makeStream(ctx, cfg); err != nil {
				return nil, err
			}
		}
		// If a team was found, another process may have made the bucket meanwhile.
		s, err = c.openStream(ctx, cfg)
		switch {
		case !errors.Is(err, errGone):
		case left != "":
			return nil, team.Errorf(team.InvalidState, "stream %s, the list of all teams, is gone, and team %s is still there: %w", cfg.Name, left, errGone).
				WithHint("restore it from a backup, or use another server (teamctl up: another --data); it is not made anew, since nobody would know of the teams")
		default: // several servers have agreed to make it, and do not have it yet
			if err := backoff(ctx, err, "open stream "+cfg.Name); err != nil {
				return nil, err
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return &Bucket{Stream: s, prefix: "$KV." + subject.Registry + "."}, nil
}

// anyTeam returns a team whose storage is on the server, "" if there is none.
func (c *Conn) anyTeam(ctx context.Context) (team.TeamID, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*callTimeout)
		names := c.js.StreamNames(attempt)
		var found team.TeamID
		for name := range names.Name() {
			found = cmp.Or(found, subject.ParseMessages(name))
		}
		cancel()
		err := names.Err()
		if err == nil || found != "" {
			return found, nil
		}
		if err := backoff(ctx, err, "list the streams"); err != nil {
			return "", err
		}
	}
}

// errGone marks a stream that does not exist.
var errGone = errors.New("stream does not exist")

func (c *Conn) makeStream(ctx context.Context, want jetstream.StreamConfig) error {
	want.Replicas = c.replicas
	for begun := time.Now(); ; {
		attempt, cancel := context.WithTimeout(ctx, 2*callTimeout)
		_, err := c.js.CreateStream(attempt, want)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
			return nil // openStream compares the settings that matter; the server fills in the others
		case tooFewServers(err) && time.Since(begun) < formTime: // below
		case standsAlone(err), tooFewServers(err):
			return team.Errorf(team.Unavailable, "make stream %s with %d replicas: %w", want.Name, want.Replicas, err).
				WithHint("so many replicas take a NATS cluster of at least so many servers, all of them up; or set AGENTTEAM_REPLICAS=1")
		case noRoom(err):
			if err = c.full("make stream "+want.Name, err); c.waits {
				err = c.waitForRoom(ctx, err)
			}
			if err != nil {
				return err
			}
			continue
		case refused(err):
			return team.Errorf(team.Unavailable, "make stream %s: %w", want.Name, err).WithHint("the server may lack disk space or JetStream limits")
		}
		if err := backoff(ctx, err, "make stream "+want.Name); err != nil {
			return err
		}
	}
}

// formTime is the time that a cluster gets to form. For a moment after two servers have found each other they do not place
// replicas on one another.
const formTime = 5 * time.Second

func standsAlone(err error) bool   { return hasCode(err, 10074) }
func tooFewServers(err error) bool { return hasCode(err, 10005) }

func (c *Conn) openStream(ctx context.Context, want jetstream.StreamConfig) (*Stream, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*callTimeout)
		s, err := c.js.Stream(attempt, want.Name)
		cancel()
		switch {
		case err == nil:
			if diff := differs(s.CachedInfo().Config, want); diff != "" {
				return nil, team.Errorf(team.InvalidState, "stream %s exists with another configuration: %s", want.Name, diff).
					WithHint("it is not agentteam's: use another server or team name, or delete the stream")
			}
			if mark := cmp.Or(s.CachedInfo().Config.Metadata[protocolMark], "1"); mark != want.Metadata[protocolMark] {
				version, _ := strconv.Atoi(mark)
				other := codec.OtherProtocol(version)
				return nil, team.Errorf(team.InvalidState, "stream %s: %w", want.Name, other).WithHint("%s", other.Hint)
			}
			return &Stream{conn: c, name: want.Name, replicas: s.CachedInfo().Config.Replicas, s: s}, nil
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return nil, team.Errorf(team.InvalidState, "stream %s is gone: %w", want.Name, errGone).
				WithHint("restore it from a backup, or use another team name; it is not made anew, since what it held is lost")
		}
		if err := backoff(ctx, err, "open stream "+want.Name); err != nil {
			return nil, err
		}
	}
}

// differs returns the first setting that breaks a promise to the team, "" if there is none. Replicas and placement are the
// operator's.
func differs(have, want jetstream.StreamConfig) string {
	slices.Sort(have.Subjects)
	slices.Sort(want.Subjects)
	switch {
	case !slices.Equal(have.Subjects, want.Subjects):
		return fmt.Sprintf("subjects are %v, not %v", have.Subjects, want.Subjects)
	case have.Storage != jetstream.FileStorage:
		return "storage is memory, not file"
	case have.Retention != jetstream.LimitsPolicy:
		return fmt.Sprintf("retention is %v, not limits", have.Retention)
	case have.Discard != want.Discard:
		return fmt.Sprintf("discard is %v, not %v", have.Discard, want.Discard)
	case have.MaxAge != want.MaxAge:
		return fmt.Sprintf("max age is %v, not %v", have.MaxAge, want.MaxAge)
	case want.MaxMsgsPerSubject > 0 && have.MaxMsgsPerSubject < want.MaxMsgsPerSubject:
		return fmt.Sprintf("history is %d, not %d", have.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	// A setting without a limit is -1, or 0 before the server has filled that in.
	case want.MaxMsgsPerSubject <= 0 && have.MaxMsgsPerSubject > 0:
		return fmt.Sprintf("it forgets all but %d messages of a subject", have.MaxMsgsPerSubject)
	case have.MaxMsgs > 0:
		return fmt.Sprintf("it holds %d messages only", have.MaxMsgs)
	case have.MaxMsgSize > 0:
		return fmt.Sprintf("a message may have %d bytes only", have.MaxMsgSize)
	case have.Duplicates < want.Duplicates:
		return fmt.Sprintf("repetitions are known for %v, not %v", have.Duplicates, want.Duplicates)
	case have.AllowDirect && !want.AllowDirect:
		return "it allows direct gets, which may be stale"
	}
	return ""
}
