package gitrepo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// Message is the text of a commit of the integration branch, with its author and task.
type Message struct {
	Subject    string // one line; a longer one is cut
	Body       string
	Agent      team.AgentID  // the author, team.UserAgent for a person; required
	Task       team.TaskID   // "" if it is for no task
	Undoes     team.TaskID   // the task that the commit undoes, if any
	Supersedes []team.TaskID // the tasks whose checks no longer count
	Time       time.Time     // default: now
}

const mostSubject, mostBody = 200, 8 << 10

// text returns the message in git's format. The trailers are its last paragraph, so no text before them can pass for one.
func (m Message) text(t team.TeamID) string {
	subject := cut(team.OneLine(m.Subject), mostSubject)
	if subject == "" {
		subject = "Work of " + string(m.Agent)
	}
	body := strings.TrimSpace(cut(m.Body, mostBody))
	if body != "" {
		body += "\n\n"
	}
	trailers := ""
	add := func(key, value string) {
		if value != "" {
			trailers += key + ": " + value + "\n"
		}
	}
	add("Task", string(m.Task))
	add("Undoes", string(m.Undoes))
	for _, id := range m.Supersedes {
		add("Supersedes", string(id))
	}
	add("Agent", string(m.Agent))
	add("Team", string(t))
	return subject + "\n\n" + body + trailers
}

// cut returns at most n bytes of s, whole characters and no control characters except newline and tab.
func cut(s string, n int) string {
	if s = team.Clean(s, len(s)); len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// check refuses invalid names of members and tasks: they become lines of the message.
func (m Message) check() error {
	if m.Agent != team.UserAgent {
		if _, err := team.ParseAgentID(string(m.Agent)); err != nil {
			return err
		}
	}
	for _, id := range append([]team.TaskID{m.Task, m.Undoes}, m.Supersedes...) {
		if id == "" {
			continue
		}
		if _, err := team.ParseTaskID(string(id)); err != nil {
			return err
		}
	}
	return nil
}

// identity returns the environment variables for git's author and committer. The mail address does not exist.
func (m Message) identity(t team.TeamID) []string {
	at := m.Time
	if at.IsZero() {
		at = time.Now()
	}
	date := fmt.Sprintf("@%d +0000", at.Unix())
	name, email := string(m.Agent), fmt.Sprintf("%s@%s.agentteam.invalid", m.Agent, t)
	return []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email, "GIT_COMMITTER_DATE=" + date,
	}
}

// Commit makes a commit of a tree; no ref moves. The same arguments with the same Time make
// the same commit. Errors: InvalidArgument.
func (r *Repo) Commit(ctx context.Context, tree Hash, m Message, parents ...Hash) (Hash, error) {
	if err := m.check(); err != nil {
		return "", err
	}
	if err := check(append(slices.Clone(parents), tree)...); err != nil {
		return "", err
	}
	args := []string{"commit-tree", string(tree), "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", string(p))
	}
	g := r.git(args...)
	g.env, g.stdin = m.identity(r.team), strings.NewReader(m.text(r.team))
	out, err := g.line(ctx)
	if err != nil {
		return "", r.gone(err)
	}
	return ParseHash(out)
}

// Entry is a commit of the integration branch.
type Entry struct {
	Commit     Hash          `json:"commit"`
	Task       team.TaskID   `json:"task,omitempty"`
	Undoes     team.TaskID   `json:"undoes,omitempty"`
	Supersedes []team.TaskID `json:"supersedes,omitempty"` // the tasks whose checks no longer count
	Agent      team.AgentID  `json:"agent"`
	Subject    string        `json:"subject"`
	Time       time.Time     `json:"time"`

	Body string `json:"-"` // of its message, without the trailers
}

// Log returns the team's commits that are in to and not in from, the oldest first, without people's commits, which a goal's
// beginning may have added. With paths, it returns those that changed one of them. from may be "".
func (r *Repo) Log(ctx context.Context, from, to Hash, paths ...string) ([]Entry, error) {
	args := []string{"log", "-z", "--reverse", "--topo-order", "--format=%H%n%ct%n%B", "--end-of-options", string(to)}
	if err := check(to); err != nil {
		return nil, err
	}
	if from != "" {
		if err := check(from); err != nil {
			return nil, err
		}
		args = append(args, "^"+string(from))
	}
	g := r.git(append(append(args, "--"), paths...)...)
	g.env = []string{"GIT_LITERAL_PATHSPECS=1"}
	out, err := g.run(ctx)
	if err != nil {
		return nil, r.gone(err)
	}
	var all []Entry
	for one := range strings.SplitSeq(string(out), "\x00") {
		if e, ok := entry(one, r.team); ok {
			all = append(all, e)
		}
	}
	return all, nil
}

// entry parses a commit as Log has git print it; ok is false for a commit that is not the team's.
func entry(text string, t team.TeamID) (e Entry, ok bool) {
	hash, rest, _ := strings.Cut(text, "\n")
	date, message, _ := strings.Cut(rest, "\n")
	var seconds int64
	if _, err := fmt.Sscan(date, &seconds); err != nil {
		return Entry{}, false
	}
	e = Entry{Commit: Hash(hash), Time: time.Unix(seconds, 0).UTC()}
	message = strings.TrimRight(message, "\n")
	trailers := strings.LastIndex(message, "\n\n")
	if trailers < 0 {
		return Entry{}, false
	}
	e.Subject, e.Body, _ = strings.Cut(message[:trailers], "\n")
	e.Body = strings.TrimSpace(e.Body)
	for l := range strings.Lines(message[trailers:]) {
		key, value, _ := strings.Cut(strings.TrimSpace(l), ": ")
		switch key {
		case "Task":
			e.Task = team.TaskID(value)
		case "Undoes":
			e.Undoes = team.TaskID(value)
		case "Supersedes":
			e.Supersedes = append(e.Supersedes, team.TaskID(value))
		case "Agent":
			e.Agent = team.AgentID(value)
		case "Team":
			ok = value == string(t)
		}
	}
	return e, ok
}
