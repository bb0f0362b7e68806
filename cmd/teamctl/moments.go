package main

import (
	"time"

	"agentteam/pkg/team"
)

// moments is the value of --since: a time, or a duration before now.
type moments struct{ time.Time }

func (m *moments) String() string { return "" } // of a flag that is left out
func (m *moments) Type() string   { return "time" }

func (m *moments) Set(s string) (err error) {
	m.Time, err = parseMoment(s, time.Now())
	return err
}

// parseMoment parses a time as people write it. A time without a date is the most recent one.
func parseMoment(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		clock, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		t := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
		if t.After(now) {
			t = t.AddDate(0, 0, -1)
		}
		return t, nil
	}
	return time.Time{}, team.Errorf(team.InvalidArgument, "--since %q is not a time", s).
		WithHint("give how long ago, such as 10m, or a time, such as 14:30 or 2026-11-22T14:30:00Z")
}
