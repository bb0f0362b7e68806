package broker

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/team"
)

// everything is the stream name under which a refusal of all writes is recorded.
const everything = ""

// loggedFor is the time for which a report of another process counts. That process repeats it every 2 s, as long as it holds.
const loggedFor = 5 * time.Second

// trouble is the reason why a write was not stored.
type trouble struct {
	err error
	at  time.Time
}

// troubles are the failed writes of a connection, by stream: a server whose disk was full stores nothing in one stream, and
// continues with another. Safe for concurrent use.
type troubles struct {
	mu     sync.Mutex
	of     map[string]trouble
	logged trouble
}

func (t *troubles) note(stream string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]trouble{}
	}
	t.of[stream] = trouble{err, time.Now()}
}

// end records that a write to a stream was stored.
func (t *troubles) end(stream string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, stream)
	delete(t.of, everything)
}

// err returns the present troubles and their streams; nil if there is none.
func (t *troubles) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.of, func(_ string, w trouble) bool { return time.Since(w.at) >= fresh })
	if w, all := t.of[everything]; all {
		return w.err
	}
	switch names := slices.Sorted(maps.Keys(t.of)); len(names) {
	case 0:
		return nil
	case 1:
		return t.of[names[0]].err
	default:
		return team.Errorf(team.Unavailable, "%w in the streams %s: writes to its disk have failed (they are not answered, reads are)", ErrNoRoom, strings.Join(names, ", ")).
			WithHint("%s", restart)
	}
}

// toOthers returns the error that another process reported, nil if there is none.
func (t *troubles) toOthers() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.logged.at) >= loggedFor {
		return nil
	}
	return t.logged.err
}
