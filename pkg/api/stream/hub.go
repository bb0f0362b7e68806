// Package stream hands the feed of a team to many readers at once: what is stored, in
// its order and with its cursor, and between it the text that models are writing now.
//
// It stores nothing and knows no HTTP; package v1 and those beside it write what it
// tells.
package stream

import (
	"context"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// Item is one thing to show: an entry of the feed, or a piece of a text that is being
// written. Exactly one of the two is set.
type Item struct {
	Entry *client.Entry
	Delta *team.Delta
}

// Options say what a reader wants.
type Options struct {
	After  client.Cursor    // the place in the feed to go on at; "" is its beginning
	Follow bool             // go on with what comes, until ctx ends
	Live   bool             // with Follow: deltas too, once the reader has caught up
	Agents []team.AgentID   // only of these; none means of all
	Types  []team.EventType // only entries of these types; none means all
}

// Hub serves any number of readers of any number of teams. Safe for concurrent use.
type Hub struct {
	client *client.Client
}

// New returns a hub that reads through c.
func New(c *client.Client) *Hub { return &Hub{client: c} }

// Follow calls f for each item, in order, until ctx ends, and then returns nil; without
// o.Follow up to the present end of the feed. Errors: f's; NotFound for a team that is
// not there; InvalidArgument for a cursor that is none of this team's.
func (h *Hub) Follow(ctx context.Context, id team.TeamID, o Options, f func(Item) error) error {
	t, err := h.client.Open(ctx, id)
	if err != nil {
		return err
	}
	return t.Feed(ctx, client.FeedOptions{After: o.After, Follow: o.Follow, Agents: o.Agents, Types: o.Types},
		func(e client.Entry) error { return f(Item{Entry: &e}) })
}
