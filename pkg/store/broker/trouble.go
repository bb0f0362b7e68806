package broker

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/team"
)

// everything is in place of a stream's name where the server refuses all writes.
const everything = ""

// toldFor is for how long it counts what another process says. It repeats it every 2 s, as long
// as it is so.
const toldFor = 5 * time.Second

// trouble is why a write was not stored.
type trouble struct {
	err error
	at  time.Time
}

// troubles are the writes of a connection that were not stored, by streams: a server that has
// met the end of its disk stores nothing in one, and continues with another. Safe for
// concurrent use.
type troubles struct {
	mu   sync.Mutex
	of   map[string]trouble
	told trouble
}

func (t *troubles) note(stream string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string]trouble{}
	}
	t.of[stream] = trouble{err, time.Now()}
}

// end takes in that a write to a stream was stored.
func (t *troubles) end(stream string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, stream)
	delete(t.of, everything)
}

// err returns what is not stored now, and in which streams; nil if everything is, as far as known.
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

// toOthers is err of another process, as it says.
func (t *troubles) toOthers() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.told.at) >= toldFor {
		return nil
	}
	return t.told.err
}
