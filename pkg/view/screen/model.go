package screen

import (
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"agentteam/pkg/client"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/view/render"
)

// cluster is the cluster behind the screen. It answers by the messages of this file.
type cluster interface {
	teams(v session) tea.Cmd                 // the list of teams, now and again: listed
	enter(v session, id team.TeamID) tea.Cmd // a team: entered, then told, looked and billed repeatedly
	again()                                  // what is read repeatedly is read now
	follow(a team.AgentID)                   // the conversation of an agent: said; "" ends that
	life(id team.TaskID) tea.Cmd             // of a task: lived
	whole(id string) tea.Cmd                 // of a message: read
	chart() tea.Cmd                          // the timeline: charted
	do(d action) tea.Cmd                     // what a person wants: done
}

// session is the number of the call of teams or enter that a message from the cluster belongs to.
type session int

func (v session) of() session { return v }

// The messages from the cluster.
type (
	listed struct {
		teams []client.TeamStatus
		err   error
	}
	entered struct {
		session
		id      team.TeamID
		record  team.Team
		members []team.Member
		tasks   []team.Task
		counts  func(team.TaskID) bool // whether a task is of the present goal; nil: all are
		begun   time.Time              // of the goal; zero: there is none
		err     error
	}
	newEntries struct {
		session
		entries []feed.Entry
		deltas  []team.Delta
		known   *known // what is to be taken in before them; nil: nothing
		at      time.Time
	}
	looked struct {
		session
		snapshot snapshot
	}
	billed struct {
		session
		bill bill
	}
	reply struct {
		session
		agent   team.AgentID
		entries []feed.Entry
		err     error
	}
	lived struct {
		session
		task  team.TaskID
		steps []string
		err   error
	}
	read struct {
		session
		id   string
		text string
		err  error
	}
	charted struct {
		session
		timeline timeline.Timeline
		took     time.Duration
		err      error
	}
	done struct {
		action action
		text   string
		err    error
	}
	ended   struct{}  // the goal is over that the screen is shown for
	linked  bool      // whether the server is connected
	tick    time.Time // each second
	resized int       // the window stays as it is; how often it has changed
)

// known is a snapshot of the records, where entries are missing.
type known struct {
	members []team.Member
	tasks   []team.Task
}

// snapshot is the state that is not in the feed.
type snapshot struct {
	record   team.Team
	agents   []client.Agent
	messages []client.StoredMessage
	plans    []client.Plan // that wait for a person
	err      error
}

// bill is the cost of model calls.
type bill struct {
	total string
	by    map[team.AgentID]string
}

// room is the shown team.
type room struct {
	entered
	state      *state.Team
	groups     []group         // its board; nil: it is to be made
	rows       rowsOf          // of that
	transcript *transcriptView // its stream
	snapshot   snapshot
	seen       time.Time // when that came; zero: none did
	cost       bill
	chart      chart
	last       map[team.AgentID]string // what each has said last

	agent  team.AgentID    // whose conversation is read; "" = none
	drafts *transcriptView // it
	full   bool            // calls and results are shown as they are
	lives  map[team.TaskID][]string
	texts  map[string]string // whole texts of messages, by their ids
}

// model is the state of the screen. Only Update changes it.
type model struct {
	behind cluster
	traits func(string) tool.Traits
	zone   *time.Location
	leave  Leave
	ended  bool // the goal is over that leave is about

	width, height int
	sizes         int // how often they have changed
	now           time.Time
	away          bool // the server is
	mouse         bool

	teams   []client.TeamStatus
	listErr error
	list    page    // of the teams
	visit   session // the newest
	room    *room   // nil: the teams are listed
	wants   team.TeamID
	tabs    [tabCount]page
	tab     int
	over    []page // pages that were entered from there, the last is shown

	prompt  *prompt
	input   textarea.Model
	written *written              // what was typed last
	history [promptCount][]string // of what was typed, by the kind of prompt
	draft   string                // what stood in the line before one of it
	notice  string                // below, until the next key
	failed  bool                  // it is an error
}

func newModel(behind cluster, traits func(string) tool.Traits, zone *time.Location, leave Leave) *model {
	m := &model{behind: behind, traits: traits, zone: zone, leave: leave, width: 80, height: 24, input: newInput()}
	m.list.kind = teamsPage
	for i := range m.tabs {
		m.tabs[i].kind = pageKind(i)
	}
	return m
}

// Init begins with a team or with the list of all.
func (m *model) Init() tea.Cmd {
	if m.wants != "" {
		return tea.Batch(m.toTeam(m.wants), clock())
	}
	return tea.Batch(m.toTeams(), clock())
}

// clock sends a tick at the next second.
func clock() tea.Cmd { return tea.Every(time.Second, func(at time.Time) tea.Msg { return tick(at) }) }

// Update handles input and messages from the cluster.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.input.SetWidth(m.width)
		m.sizes++
		size := m.sizes
		return m, tea.Tick(batchTime, func(time.Time) tea.Msg { return resized(size) })
	case resized:
		if int(msg) == m.sizes { // of a window that is pulled, only the last size is worth it
			m.lay()
		}
	case tick:
		m.now = time.Time(msg)
		if r := m.room; r != nil {
			m.flush(r)
		}
		if m.charts() {
			return m, tea.Batch(clock(), m.behind.chart())
		}
		return m, clock()
	case linked:
		if m.away = !bool(msg); !m.away {
			m.behind.again()
			if r := m.room; r != nil && r.chart.err != nil {
				r.chart.next = time.Time{}
			}
		}
	case listed:
		if m.listErr = msg.err; msg.err == nil { // else the last list is better than none
			m.teams = msg.teams
		}
	case entered:
		if msg.session == m.visit {
			return m, m.enter(msg)
		}
	case interface{ of() session }:
		if m.room != nil && msg.of() == m.visit {
			return m, m.hear(m.room, msg)
		}
	case done:
		return m, m.did(msg)
	case ended:
		if m.ended = true; !m.failed {
			m.notice = "" // below stands how it has ended
		}
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		return m, m.paste(msg)
	case tea.MouseWheelMsg, tea.MouseClickMsg:
		return m, m.pointer(msg.(tea.MouseMsg))
	}
	return m, nil
}

// enter shows a team that was opened.
func (m *model) enter(e entered) tea.Cmd {
	if e.err != nil {
		cmd := m.toTeams()
		m.fails(e.err)
		return cmd
	}
	again := m.room != nil && m.room.id == e.id // with another goal
	r := &room{entered: e, state: state.New(), last: map[team.AgentID]string{}, lives: map[team.TaskID][]string{}, texts: map[string]string{}}
	r.snapshot.record = e.record
	r.state.KnowMembers(e.members)
	r.state.KnowTasks(e.tasks, e.counts)
	r.transcript = newTranscript(m.telling(r), e.members, e.tasks, e.counts)
	m.room = r
	if !again {
		m.tab, m.over, m.prompt = 0, nil, nil // what is asked is about the team that was shown
		for i := range m.tabs {
			m.tabs[i] = page{kind: pageKind(i)}
		}
	}
	m.lay()
	m.listen()
	return m.lifeOf("")
}

// lifeOf reads the history of a task, for "" of each, if it is shown.
func (m *model) lifeOf(id team.TaskID) (cmd tea.Cmd) {
	for _, p := range m.over {
		if shown := team.TaskID(p.about); p.kind == taskPage && (id == "" || id == shown) {
			cmd = tea.Batch(cmd, m.behind.life(shown))
		}
	}
	return cmd
}

// telling returns the settings of r's stream.
func (m *model) telling(r *room) render.Options {
	return render.Options{Width: m.width, Full: r.full, Traits: m.traits, Zone: m.zone}
}

// lay sets the width of the transcripts.
func (m *model) lay() {
	if r := m.room; r != nil {
		r.transcript.resize(m.width, r.full)
		if r.drafts != nil {
			r.drafts.resize(m.width, r.full)
		}
	}
}

// hear handles a message from the cluster about the team.
func (m *model) hear(r *room, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case newEntries:
		return m.take(r, msg)
	case looked:
		return m.poll(r, msg.snapshot)
	case billed:
		r.cost = msg.bill
	case reply:
		if msg.agent == r.agent && r.drafts != nil {
			m.grow(agentPage, r.drafts.take(msg.entries))
			if msg.err != nil {
				m.notice, m.failed = team.Line(msg.err), true
			}
		}
	case charted:
		r.charted(msg.timeline, msg.err, m.now, msg.took)
	case lived:
		if r.lives[msg.task] = msg.steps; msg.err != nil {
			r.lives[msg.task] = []string{team.Line(msg.err)}
		}
	case read:
		if r.texts[msg.id] = msg.text; msg.err != nil {
			r.texts[msg.id] = team.Line(msg.err)
		}
	}
	return nil
}

// poll stores the state of the team. Another goal starts a new story.
func (m *model) poll(r *room, l snapshot) tea.Cmd {
	if l.err != nil {
		if team.CodeOf(l.err) == team.NotFound { // it was deleted
			return m.fails(l.err)
		}
		return nil // it is tried again; that the server is away, or the last look old, stands above
	}
	r.snapshot, r.seen = l, m.now
	if l.record.GoalNumber != r.record.GoalNumber {
		return m.toTeam(r.id)
	}
	return nil
}

// take adds entries and deltas.
func (m *model) take(r *room, msg newEntries) (cmd tea.Cmd) {
	if k := msg.known; k != nil {
		r.state.KnowMembers(k.members)
		r.state.KnowTasks(k.tasks, r.counts)
		r.groups = nil
	}
	for _, e := range msg.entries {
		for _, c := range r.state.Apply(e) {
			if c, ok := c.(state.TaskChanged); ok {
				r.groups = nil
				cmd = tea.Batch(cmd, m.lifeOf(c.After.ID)) // it has another step
			}
		}
		if b := e.Event.Event; b.Type == team.TextChunk && e.AgentID == e.AgentID.Owner() {
			if text := lastLine(b.Delta); text != "" {
				r.last[e.AgentID] = text
			}
		}
	}
	for _, d := range msg.deltas {
		r.state.Write(d, msg.at)
		r.transcript.story.Write(d, msg.at)
	}
	m.grow(streamPage, r.transcript.take(msg.entries))
	return cmd
}

// flush shows entries that were held back.
func (m *model) flush(r *room) {
	m.grow(streamPage, r.transcript.flush())
	if r.drafts != nil {
		m.grow(agentPage, r.drafts.flush())
	}
}

// grow keeps the read position of a page while lines are added below it.
func (m *model) grow(kind pageKind, added []*entryView) {
	for _, pages := range [][]page{m.tabs[:], m.over} {
		for i := range pages {
			if p := &pages[i]; p.kind == kind && p.up > 0 {
				p.up += len(linesOf(added, p.filter))
			}
		}
	}
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) (last string) {
	if len(text) > mostOfText {
		text = text[len(text)-mostOfText:]
	}
	for l := range strings.SplitSeq(text, "\n") {
		if l = line(l); l != "" {
			last = l
		}
	}
	return last
}
