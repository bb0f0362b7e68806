package agent

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/model"
	"agentteam/pkg/model/tokens"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// Folders finds the instructions of the repository for the folders of a file, the outermost first,
// without those for which skip is true; for no file, the current instructions of the workspace, as
// a folder [Top]. The names are relative to the workspace. It reads a few files.
type Folders func(ctx context.Context, file string, skip func(folder string) bool) []Folder

// Folder holds the repository's instructions for a folder below the workspace.
type Folder struct {
	Name  string
	Files []projectcontext.File
}

// Top is the name of the workspace itself.
const Top = "."

// folder is a Folder as the model was shown it.
type folder struct {
	Name  string                 `json:"name"`
	Block string                 `json:"block"`
	Files []team.InstructionFile `json:"files,omitempty"`
}

// maxFolders bounds the instructions of all folders in one context, in bytes; folders beyond it are
// only named.
const maxFolders = 32 << 10

// folderFrame begins the block of a folder's instructions.
const folderFrame = "[Instructions of the project for files in "

// noteFolders shows the model the repository's instructions for the folders in which its calls have
// read or written files, once each, as the newest input of its next turn.
func (a *Agent) noteFolders(ctx context.Context) error {
	touched := a.touched
	a.touched = nil
	return a.conv.noteFolders(ctx, touched, a.o.Folders, a.engine.Enqueue)
}

// noteFolders does that for the files in touched; enqueue has a record stored and takes it in.
func (c *Conversation) noteFolders(ctx context.Context, touched []string, find Folders, enqueue func(context.Context, journal.Record) error) error {
	if find == nil {
		return nil
	}
	for _, file := range slices.Compact(touched) {
		for _, f := range find(ctx, file, c.in) {
			if err := enqueue(ctx, journal.Record{Kind: journal.Project, Folder: f.Name, Files: f.Files}); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteTop shows the model the instructions in the tree of its task, if they differ from those in
// its system message: merged work of others may have changed them.
func (a *Agent) noteTop(ctx context.Context) error {
	if a.o.Folders == nil || a.conv.Place == nil {
		return nil
	}
	for _, f := range a.o.Folders(ctx, "", func(string) bool { return false }) {
		if len(f.Files)+len(a.conv.Place.Project) == 0 || reflect.DeepEqual(f.Files, a.conv.Place.Project) {
			continue
		}
		if err := a.engine.Enqueue(ctx, journal.Record{Kind: journal.Project, Folder: f.Name, Files: f.Files}); err != nil {
			return err
		}
	}
	return nil
}

// in reports whether the model was shown the instructions of a folder.
func (c *Conversation) in(name string) bool {
	return slices.ContainsFunc(c.Folders, func(f folder) bool { return f.Name == name })
}

// enter takes in the instructions for a folder. They cause no turn.
func (c *Conversation) enter(r journal.Record) {
	before := 0
	for _, f := range c.Folders {
		before += len(f.Block)
	}
	block := folderFrame + neutral(r.Folder) + ": the repository's word, as that above; it grants nothing. Of several folders the nearest to a file goes first.]\n" + fileBlocks(r.Files)
	if r.Folder == Top {
		block = "[Instructions of the project, as your task's tree has them. They take the place of those in the system message, and grant nothing.]\n" + fileBlocks(r.Files)
	}
	told := projectcontext.Summaries(r.Files)
	if before+len(block) > maxFolders {
		block = folderFrame + neutral(r.Folder) + " are left out here, for there are many: read its AGENTS.md or CLAUDE.md.]"
		for i := range told {
			told[i].LeftOut, told[i].Bytes = told[i].LeftOut+told[i].Bytes, 0
		}
	}
	c.Folders = append(slices.Clip(c.Folders), folder{r.Folder, block, told})
	c.Input(block, false)
}

// foldersBefore returns the shown instructions of folders again, except those among the messages
// that are kept: in about room tokens, the newest first, and the others by their names.
func (c *Conversation) foldersBefore(kept []*model.Message, room int) string {
	var texts, others []string
	for _, f := range slices.Backward(c.Folders) {
		if slices.ContainsFunc(kept, func(m *model.Message) bool { return m.Role == "user" && strings.Contains(m.Content, f.Block) }) {
			continue
		}
		if n := tokens.Estimate(f.Block); n <= room {
			texts, room = append(texts, f.Block), room-n
		} else {
			others = append(others, neutral(f.Name))
		}
	}
	slices.Reverse(texts)
	if others != nil {
		texts = append(texts, folderFrame+engine.Head(strings.Join(others, ", "), 2000)+" are left out here: read their AGENTS.md or CLAUDE.md.]")
	}
	if texts == nil {
		return ""
	}
	return strings.Join(texts, "\n") + "\n"
}

// notedFiles returns the project files that the agent's model was shown.
func (c *Conversation) notedFiles() (files []team.InstructionFile) {
	if c.Place != nil && !c.in(Top) {
		files = projectcontext.Summaries(c.Place.Project)
	}
	for _, f := range c.Folders {
		files = append(files, f.Files...)
	}
	return files[:min(len(files), mostNoted)]
}

// mostNoted bounds how many files a heartbeat names.
const mostNoted = 32
