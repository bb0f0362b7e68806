package usage

import (
	"cmp"
	"slices"

	"agentteam/pkg/team"
)

// By is the key by which calls are grouped into rows.
type By string

// The keys of rows.
const (
	ByAgent By = "agent"
	ByRole  By = "role"
	ByAlias By = "alias" // of the model
	ByTask  By = "task"
)

// Bys returns the words of every By.
func Bys() []string {
	return []string{string(ByAgent), string(ByRole), string(ByAlias), string(ByTask)}
}

// ParseBy reads the word of a By. Errors: InvalidArgument.
func ParseBy(s string) (By, error) {
	if !slices.Contains(Bys(), s) {
		return "", team.Errorf(team.InvalidArgument, "calls cannot be told apart by %q", s).WithHint("use agent, role, alias or task")
	}
	return By(s), nil
}

// Row is the total use of the calls of one name.
type Row struct {
	Name string // of an agent, role, alias or task; "" = none, or not known
	Sum
	Parts []Row // the same calls, by the next By; ordered as rows are
}

// Table is the total use of calls, by name.
type Table struct {
	By    By
	Rows  []Row // by cost, the highest first, then by tokens, then by name
	Total Sum
}

// Tally sums up calls. It must be made with [NewTally]; use it from one goroutine.
type Tally struct {
	by    []By
	roles map[team.AgentID]string
	rows  map[string]*Tally
	total Sum
}

// NewTally returns an empty tally, with a row for each name by the first of by, and in each row parts by the next. roles
// are the agents' roles, for ByRole; an agent without an entry has the role "".
func NewTally(roles map[team.AgentID]string, by ...By) *Tally {
	return &Tally{by: by, roles: roles, rows: map[string]*Tally{}}
}

// Add counts one call.
func (t *Tally) Add(c Call) {
	t.total.add(c)
	if len(t.by) == 0 {
		return
	}
	name := t.name(c)
	row := t.rows[name]
	if row == nil {
		row = NewTally(t.roles, t.by[1:]...)
		t.rows[name] = row
	}
	row.Add(c)
}

func (t *Tally) name(c Call) string {
	switch t.by[0] {
	case ByRole:
		return t.roles[c.Agent]
	case ByAlias:
		return c.Alias
	case ByTask:
		return string(c.Task)
	}
	return string(c.Agent)
}

// Table returns the counts so far.
func (t *Tally) Table() Table {
	table := Table{Total: t.total}
	if len(t.by) > 0 {
		table.By = t.by[0]
	}
	for name, row := range t.rows {
		table.Rows = append(table.Rows, Row{name, row.total, row.Table().Rows})
	}
	slices.SortFunc(table.Rows, func(a, b Row) int {
		return cmp.Or(
			cmp.Compare(b.Cost, a.Cost),
			cmp.Compare(b.Tokens()+b.Wasted(), a.Tokens()+a.Wasted()),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return table
}
