package tool

import "slices"

// Traits hold for every call of a tool. The zero Traits assume the most: the tool may change something, so gates are
// asked; its calls are not cut off; watchers see calls and results, which are kept. Traits are an [Option].
type Traits struct {
	ReadOnly   bool // changes nothing that others can see: it may run again, and no gate is asked
	Writes     bool // writes files or executes
	Yields     bool // a call may be cut off in the middle; of a tool that is ReadOnly it always may
	Ungated    bool // no gate is asked although it changes something; see [UngatedIf]
	Parallel   bool // calls that follow one another in a turn run at the same time
	LeaderOnly bool // only the leader may use it

	Talk   bool // sends mail, or shows how the team stands: a call brings no news
	Silent bool // its effect is recorded by itself, so those who watch need not see the call
	Terse  bool // those who watch see the call, but its result is of no use to them

	// Bulky results are long and soon of no use, so a conversation may leave out old ones. So
	// it may the values of the arguments in Stored, which can be read again where the tool has
	// put them. An argument in Reads names the file whose content is the result.
	Bulky  bool
	Stored []string
	Reads  []string
}

// apply sets the traits of the tool.
func (tr Traits) apply(t *Tool) error {
	tr.Yields = tr.Yields || tr.ReadOnly
	t.Traits = tr
	return t.arguments.has(slices.Concat(tr.Stored, tr.Reads)...)
}
