package workspace

import (
	"context"
	"io/fs"

	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool"
)

// change is a change of a file that is about to be made; nil is not recorded.
type change team.Change

// keeps stores the content of a file that is to be replaced, if members share the folder. now is the file, nil if there
// is none, and old its content, if known. If storing fails, the write is still made and the content is lost.
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

// note adds the change, which was made, to the account of the call.
func (c *change) note(ctx context.Context, content string) {
	if c == nil {
		return
	}
	c.After = team.DigestOf(content)
	tool.Note(ctx, func(a *team.Account) { a.Change = (*team.Change)(c) })
}
