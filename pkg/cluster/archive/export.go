package archive

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/agent/runtime"
	"agentteam/pkg/client"
	"agentteam/pkg/store/usage"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

//go:embed report.html
var reportText string

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{"plain": plain}).Parse(reportText))

// mostDiff bounds the diff in an export.
const mostDiff = 8 << 20

// report is the content of an export.
type report struct {
	At      time.Time
	Record  team.Team
	Tasks   []team.TaskView
	Members []exported
	Costs   []costLine // the last is of all
	Diff    string     // of the integration branch since it began; "" without one
	DiffCut bool
}

// exported is a member in a report, or after it one of its subagents, whose State is "".
type exported struct {
	Name, Role, State, Transcript string

	File string // with the transcript; "" if there is none
}

// About returns its role and state, in a few words.
func (e exported) About() string {
	if e.State == "" {
		return e.Role
	}
	return e.Role + ", " + e.State
}

type costLine struct {
	Name           string
	Calls, In, Out int
	Cost           string
}

// Export writes a team's work into a folder for people to read: README.md and report.html (a page
// without scripts), config.json (the team with its members), transcripts/NAME.md of members and
// their subagents, tasks/ID.json, inboxes/NAME.jsonl, and changes.diff if it has an integration
// branch. The folder must be empty or missing.
//
// Errors: Conflict if the folder is not empty; those of reading the team; those of the disk. After
// an error no new file remains.
func Export(ctx context.Context, t *client.Team, dir string) error {
	left, err := os.ReadDir(dir)
	for _, e := range left {
		if strings.HasPrefix(e.Name(), unfinished) { // of an export that was killed
			continue
		}
		return team.Errorf(team.Conflict, "the folder %s is not empty", dir).WithHint("name one that is empty, or not there")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return coded(dir, err)
	}
	for _, e := range left {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return coded(dir, err)
		}
	}
	temporary, err := quarantined(dir)
	if err != nil {
		return coded(dir, err)
	}
	defer os.RemoveAll(temporary)
	e, err := newExport(temporary)
	if err == nil {
		err = errors.Join(e.all(ctx, t), e.root.Close())
	}
	if err == nil {
		err = moveInto(dir, temporary)
	}
	return coded(dir, err)
}

// unfinished is the prefix of the name of a folder with an incomplete export.
const unfinished = ".export-"

// quarantined makes a folder for an incomplete export: in the empty folder dir, which may be a separate
// disk, or next to a missing dir.
func quarantined(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(full); errors.Is(err, fs.ErrNotExist) {
		full = filepath.Dir(full)
	}
	return os.MkdirTemp(full, unfinished)
}

// moveInto moves the content of a folder to dir. An existing dir stays the same folder: a shell may
// be in it.
func moveInto(dir, from string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(from, dir)
	}
	entries, err := os.ReadDir(from)
	slices.Reverse(entries) // README.md is the last: once it is there, all of it is
	for i, entry := range entries {
		if err = os.Rename(filepath.Join(from, entry.Name()), filepath.Join(dir, entry.Name())); err != nil {
			for _, moved := range entries[:i] {
				err = errors.Join(err, os.RemoveAll(filepath.Join(dir, moved.Name())))
			}
			break
		}
	}
	return err
}

// export writes into one folder, and never out of it.
type export struct{ root *os.Root }

func newExport(dir string) (*export, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"transcripts", "tasks", "inboxes"} {
		if err := root.Mkdir(name, 0o700); err != nil {
			return nil, errors.Join(err, root.Close())
		}
	}
	return &export{root}, nil
}

// write creates and writes a file.
func (e *export) write(name string, f func(io.Writer) error) error {
	file, err := e.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	err = f(w)
	return errors.Join(err, w.Flush(), file.Close())
}

func (e *export) all(ctx context.Context, t *client.Team) (err error) {
	r := report{At: time.Now().UTC()}
	if r.Record, err = t.Record(ctx); err != nil {
		return err
	}
	if r.Tasks, err = t.Board().Tasks(ctx); err != nil {
		return err
	}
	for _, task := range r.Tasks {
		if err := e.write("tasks/"+string(task.ID)+".json", func(w io.Writer) error { return indented(w, task) }); err != nil {
			return err
		}
	}
	members, err := t.Members().Records(ctx)
	if err != nil {
		return err
	}
	if err := e.write("config.json", func(w io.Writer) error { return indented(w, config{r.Record, members}) }); err != nil {
		return err
	}
	if r.Members, err = e.members(ctx, t, members); err != nil {
		return err
	}
	if err := e.inbox(ctx, t, team.UserAgent); err != nil {
		return err
	}
	table, err := t.Cost(ctx, 0, usage.ByAgent)
	if err != nil {
		return err
	}
	r.Costs = costs(table)
	if r.Record.HasBranch() {
		r.Diff, r.DiffCut = e.changes(ctx, t)
		if err := e.write("changes.diff", func(w io.Writer) error { _, err := io.WriteString(w, r.Diff); return err }); err != nil {
			return err
		}
	}
	if err := e.write("report.html", func(w io.Writer) error { return reportPage.Execute(w, r) }); err != nil {
		return err
	}
	return e.write("README.md", r.readme)
}

// config is the content of config.json.
type config struct {
	Team    team.Team     `json:"team"`
	Members []team.Member `json:"members"`
}

func indented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// members writes the conversations of the members and of their subagents, and the members' inboxes.
// A seat has no conversation.
func (e *export) members(ctx context.Context, t *client.Team, members []team.Member) (all []exported, err error) {
	subagents, err := t.Members().Subagents(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if err := e.inbox(ctx, t, m.AgentID); err != nil {
			return nil, err
		}
		own := []exported{{Name: string(m.AgentID), Role: m.Role, State: string(m.State)}}
		for _, sub := range subagents[m.AgentID] {
			own = append(own, exported{Name: string(sub), Role: "subagent of " + string(m.AgentID)})
		}
		for i := range own {
			if m.Backend == team.Person {
				continue
			}
			if err := e.transcript(ctx, t, &own[i]); err != nil {
				return nil, err
			}
		}
		all = append(all, own...)
	}
	return all, nil
}

// transcript writes one conversation, and keeps it for the page.
func (e *export) transcript(ctx context.Context, t *client.Team, one *exported) error {
	var text strings.Builder
	s := render.New(render.Options{Full: true, Journal: true, Dated: true, Zone: time.UTC, Traits: runtime.Traits})
	add := func(lines []string) {
		for _, l := range lines {
			text.WriteString(plain(ansi.Strip(l)) + "\n")
		}
	}
	err := t.Members().Transcript(ctx, team.AgentID(one.Name), false, func(e client.Entry) error { add(s.Render(e)); return nil })
	switch {
	case errors.Is(err, team.NotFound): // of a subagent: its journal has expired meanwhile
		return nil
	case err != nil && !errors.Is(err, team.ErrUnreadable):
		return err
	}
	if add(s.Flush()); err != nil {
		add([]string{team.OneLine(err.Error())})
	}
	one.Transcript, one.File = text.String(), "transcripts/"+one.Name+".md"
	return e.write(one.File, func(w io.Writer) error {
		fence := fenceFor(one.Transcript)
		_, err := fmt.Fprintf(w, "# %s\n\n%s. Times are UTC.\n\n%s text\n%s%s\n", markdown(one.Name), markdown(one.About()), fence, one.Transcript, fence)
		return err
	})
}

// inbox writes the mail to a member, one message a line.
func (e *export) inbox(ctx context.Context, t *client.Team, a team.AgentID) error {
	letters, err := t.Mail().Inbox(ctx, a)
	if err != nil {
		return err
	}
	return e.write("inboxes/"+string(a)+".jsonl", func(w io.Writer) error {
		enc := json.NewEncoder(w)
		for _, l := range letters {
			if err := enc.Encode(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// changes returns the diff of the integration branch, or the error as text: it does not stop the
// export.
func (e *export) changes(ctx context.Context, t *client.Team) (text string, cut bool) {
	d, err := t.Branch().Diff(ctx, client.DiffOptions{All: true, Most: mostDiff})
	if err != nil {
		return "the difference is not to be had: " + team.Line(err) + "\n", false
	}
	return d.Text, d.Cut
}

func costs(t usage.Table) (all []costLine) {
	line := func(name string, s usage.Sum) costLine {
		l := costLine{Name: name, Calls: s.Calls, In: s.PromptTokens, Out: s.CompletionTokens, Cost: "not known"}
		if c := s.Known(); c != nil {
			l.Cost = strings.TrimSpace(fmt.Sprintf("%.4f %s", *c, s.Currency))
		}
		return l
	}
	for _, row := range t.Rows {
		all = append(all, line(row.Name, row.Sum))
	}
	return append(all, line("all", t.Total))
}

// readme writes the summary.
func (r report) readme(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Team %s\n\n%s, exported %s. The same as a page: [report.html](report.html).\n", r.Record.ID, r.Record.Status, r.At.Format(time.DateTime+" MST"))
	quote := func(title, text string) {
		if text != "" {
			fence := fenceFor(text)
			fmt.Fprintf(&b, "\n## %s\n\n%s text\n%s\n%s\n", title, fence, plain(text), fence)
		}
	}
	quote("Goal", r.Record.Goal)
	quote("Result", r.Record.Summary)
	quote("Why it failed", r.Record.Reason)
	b.WriteString("\n## Tasks\n\n| task | title | status | by | result |\n|---|---|---|---|---|\n")
	for _, t := range r.Tasks {
		fmt.Fprintf(&b, "| [%s](tasks/%s.json) | %s | %s | %s | %s |\n", t.ID, t.ID, markdown(t.Title), t.Status, markdown(string(t.Assignee)), markdown(t.ResultSummary+" "+t.Reason))
	}
	b.WriteString("\n## Members\n\n| member | role | state |\n|---|---|---|\n")
	for _, m := range r.Members {
		name := markdown(m.Name)
		if m.File != "" {
			name = fmt.Sprintf("[%s](%s)", name, m.File)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, markdown(m.Role), m.State)
	}
	b.WriteString("\n## Model calls\n\n| member | calls | tokens in | tokens out | cost |\n|---|---|---|---|---|\n")
	for _, c := range r.Costs {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %s |\n", markdown(c.Name), c.Calls, c.In, c.Out, markdown(c.Cost))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown escapes a text for the cell of a table.
func markdown(s string) string {
	return escapes.Replace(strings.TrimSpace(plain(team.OneLine(s))))
}

var escapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "!", `\!`, "#", `\#`)

// fenceFor returns a fence that the text does not contain.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}

// plain removes invisible characters from a text, such as those that turn the direction of writing,
// except tabs and line ends.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
