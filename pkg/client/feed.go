package client

import (
	"context"

	"agentteam/pkg/feed"
)

// Entry is one entry of a team's feed.
type Entry = feed.Entry

// Cursor is a place in a team's feed; "" is its beginning.
type Cursor = feed.Cursor

// FeedOptions say what of a team's feed is to be read.
type FeedOptions = feed.Options

// Feed calls f for everything that happened in the team behind o.After, and with
// o.Follow for what happens, until ctx ends; then it returns nil. See [feed.Read].
func (t *Team) Feed(ctx context.Context, o FeedOptions, f func(Entry) error) error {
	return feed.Read(ctx, t.team, o, f)
}
