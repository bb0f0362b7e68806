package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Lessons is a store of the lessons of endpoints, which processes share: what the error of an endpoint has taught one of
// them costs no other a refused call. A lesson is the JSON of the profile's fields that the endpoint wants otherwise, or
// "". It holds no text of an endpoint or a person. Its methods do not block and are safe for concurrent use.
type Lessons interface {
	// Lesson returns the lesson that is stored under key. It forgets old ones, since an endpoint may change.
	Lesson(key string) string
	// Learn stores a lesson.
	Learn(key, lesson string)
}

// lessonKey returns the key of the lessons for an endpoint, a model and a profile.
func lessonKey(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\n")))
	return hex.EncodeToString(sum[:16])
}

// current returns the profile with all lessons, also those of other processes. The caller holds d.mu.
func (d *dialect) current() *endpointSettings {
	if d.shared == nil {
		return d.now
	}
	if l := d.shared.Lesson(d.key); l != d.seen {
		d.seen, d.now = l, d.base
		if p, ok := d.base.taught(l); ok {
			d.now = speak(p)
		}
	}
	return d.now
}

// replace makes p the profile, for all processes. The caller holds d.mu.
func (d *dialect) replace(p profile) {
	d.now = speak(p)
	if d.shared != nil {
		d.seen = d.base.lesson(p)
		d.shared.Learn(d.key, d.seen)
	}
}

// taught reports whether the dialect has lessons.
func (d *dialect) taught() bool { return d.settings(false) != d.settings(true) }

// unlearn forgets all lessons.
func (d *dialect) unlearn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.replace(d.base.profile)
	d.now = d.base
}

// lesson returns the fields of next that differ from p, as JSON; "" if none does.
func (p profile) lesson(next profile) string {
	was, is := p.learnable(), next.learnable()
	maps.DeleteFunc(is, func(k string, v json.RawMessage) bool { return bytes.Equal(v, was[k]) })
	if len(is) == 0 {
		return ""
	}
	text, _ := json.Marshal(is) // JSON already
	return string(text)
}

func (p profile) learnable() (fields map[string]json.RawMessage) {
	text, _ := json.Marshal(p) // plain data
	_ = json.Unmarshal(text, &fields)
	return fields
}

// taught returns p with the fields of a lesson, and false if there is none that can be read.
func (p profile) taught(lesson string) (profile, bool) {
	for _, list := range []*[]string{&p.LimitRenamed, &p.Echo, &p.Drop, &p.SchemaDrop} {
		*list = slices.Clone(*list) // profiles share their lists, and decoding writes into them
	}
	return p, lesson != "" && json.Unmarshal([]byte(lesson), &p) == nil
}
