package config

import (
	"agentteam/pkg/model/router"
	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// budgetsSection is `budgets:` of the settings file. Each takes the place of the limit that the team has, so it counts once
// the file is trusted: a repository could raise the limits of a person.
type budgetsSection struct {
	Team    budgetLimit                  `yaml:"team,omitempty"`
	Goal    budgetLimit                  `yaml:"goal,omitempty"`
	Roles   map[string]budgetLimit       `yaml:"roles,omitempty"`
	Members map[team.AgentID]budgetLimit `yaml:"members,omitempty"`
	Tasks   map[team.TaskID]budgetLimit  `yaml:"tasks,omitempty"`
}

// budgetLimit is one budget, by kinds or as [team.ParseBudget] reads it.
type budgetLimit struct {
	Cost     string `yaml:"cost,omitempty"`      // US dollars: 5 or 5usd
	Tokens   string `yaml:"tokens,omitempty"`    // 2Mtok
	Turns    string `yaml:"turns,omitempty"`     // 400
	WallTime string `yaml:"wall_time,omitempty"` // 90m

	list string // written short
}

// UnmarshalText reads a budget that is written short.
func (l *budgetLimit) UnmarshalText(text []byte) error {
	_, none, err := team.ParseBudget(string(text))
	if err == nil && none {
		err = team.Errorf(team.InvalidArgument, "a budget none is written by leaving it out")
	}
	l.list = string(text)
	return err
}

// Validate implements the rule of package strictyaml.
func (l budgetLimit) Validate() error {
	_, err := l.limit()
	return err
}

func (l budgetLimit) limit() (b team.Budget, err error) {
	if l.list != "" {
		b, _, err = team.ParseBudget(l.list)
		return b, err
	}
	for _, f := range []struct {
		key, value, unit string
		to               func(team.Budget) team.Budget
	}{
		{"cost", l.Cost, "", func(x team.Budget) team.Budget { return team.Budget{Cost: x.Cost} }},
		{"tokens", l.Tokens, "tok", func(x team.Budget) team.Budget { return team.Budget{Tokens: x.Tokens} }},
		{"turns", l.Turns, "turns", func(x team.Budget) team.Budget { return team.Budget{Turns: x.Turns} }},
		{"wall_time", l.WallTime, "", func(x team.Budget) team.Budget { return team.Budget{WallTime: x.WallTime} }},
	} {
		if f.value == "" {
			continue
		}
		n, _, err := team.ParseBudget(f.value)
		if f.unit != "" && (err != nil || n.Cost != 0) { // a number alone, or with M or k
			n, _, err = team.ParseBudget(f.value + f.unit)
		}
		if err == nil && f.to(n) == (team.Budget{}) {
			err = team.Errorf(team.InvalidArgument, "budget %q is no %s", f.value, f.key)
		}
		if err != nil {
			return b, strictyaml.At(err, f.key)
		}
		b = b.Plus(f.to(n))
	}
	return b, nil
}

const assumedKey = "assume_price"

// takeAssumed completes the price that is assumed where none is known.
func (c *Config) takeAssumed(file map[string]entry) {
	e := file[assumedKey]
	if e.origin == "" {
		return
	}
	p := &c.assumed
	c.assumes = true
	if !e.node.Has("cached") {
		p.Cached = p.Input
	}
	if !e.node.Has("written") {
		p.Written = p.Input
	}
}

// pricesOf returns the prices of an alias: its own, or those that are assumed; nil if there are none.
func (c Config) pricesOf(a Alias) *router.Prices {
	if a.Prices == nil && c.assumes {
		return &c.assumed
	}
	return a.Prices
}

// Unpriced returns the aliases whose price is not known.
func (c Config) Unpriced() (names []string) {
	for _, a := range c.Aliases() {
		if a.Same == "" && c.pricesOf(a) == nil {
			names = append(names, a.Name)
		}
	}
	return names
}

// budgets returns the section as the team's record has it.
func (s budgetsSection) budgets() (b team.Budgets) {
	set := func(of team.BudgetOf, l budgetLimit) {
		if limit, err := l.limit(); err == nil && limit != (team.Budget{}) { // it was checked as it was read
			b = b.With(of, limit)
		}
	}
	set(team.BudgetOf{}, s.Goal)
	set(team.BudgetOf{Team: true}, s.Team)
	for name, l := range s.Roles {
		set(team.BudgetOf{Role: name}, l)
	}
	for name, l := range s.Members {
		set(team.BudgetOf{Member: name}, l)
	}
	for id, l := range s.Tasks {
		set(team.BudgetOf{Task: id}, l)
	}
	return b
}
