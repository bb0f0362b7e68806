package workspace

import (
	"context"
	"io/fs"

	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool"
)

// change is a change of a file that is about to be made; nil: it is not to be kept.
type change team.Change

// keeps stores what is in a file that is to be replaced, if members share the folder. now is the
// file, nil if there is none, and old its content, if that is known. What cannot be stored is
// lost with the write, which is made all the same.
func (w *Workspace) keeps(ctx context.Context, name string, now fs.FileInfo, old string, known bool) *change {
	if !w.o.Shared {
		return nil
	}
	c := &change{Path: name, New: now == nil}
	if known && w.o.Keep != nil {
		ctx, cancel := context.WithTimeout(ctx, blob.KeepWithin)
		defer cancel()
		c.Before, _ = w.o.Keep(ctx, old) // its absence tells
	}
	return c
}

// note puts the change, which was made, into the account of the call.
func (c *change) note(ctx context.Context, content string) {
	if c == nil {
		return
	}
	c.After = team.DigestOf(content)
	tool.Note(ctx, func(a *team.Account) { a.Change = (*team.Change)(c) })
}
