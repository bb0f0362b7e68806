package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Try states how an earlier hold of a task ended. If its work failed to merge, or was not finished, it names the commit
// of the work.
type Try struct {
	By     AgentID `json:"by"` // who held it
	Reason string  `json:"reason,omitempty"`
	Epoch  uint64  `json:"epoch,omitempty"`  // of that hold
	Commit string  `json:"commit,omitempty"` // its work, 40 hexadecimal digits; "" if none was stored
	Base   string  `json:"base,omitempty"`   // the commit of the line on which that was made

	Unfinished bool   `json:"unfinished,omitempty"` // the hold ended before the work was completed
	Ignored    string `json:"ignored,omitempty"`    // a commit on Commit with the files that git ignores; "" if there are none
	LeftOut    string `json:"left_out,omitempty"`   // the files that were not stored, with their sizes; "" if all were, or none was
	Host       string `json:"host,omitempty"`       // which may have files that are not stored; "" if there are none
}

// LeftOn returns the work of t's holder if nothing of it was stored: it may be in a tree on host. It returns nil if no
// host is known.
func (t Task) LeftOn(host string) *Try {
	if host == "" {
		return nil
	}
	return &Try{By: t.Assignee, Epoch: t.Epoch, Unfinished: true, Host: host}
}

// Left returns t with the work y of an ended hold, in the order of the holds. It replaces an earlier entry for that
// hold.
func (t Task) Left(y Try) Task {
	t.Returned = slices.DeleteFunc(slices.Clone(t.Returned), func(x Try) bool { return x.Epoch == y.Epoch })
	t.Returned = append(t.Returned, y)
	slices.SortStableFunc(t.Returned, func(x, y Try) int { return cmp.Compare(x.Epoch, y.Epoch) })
	t.Returned = t.Returned[max(0, len(t.Returned)-maxReturned):]
	return t
}

// Work returns the newest stored work on t that is not merged; ok is false if there is none.
func (t Task) Work() (work Try, ok bool) {
	for _, y := range slices.Backward(t.Returned) {
		if y.Commit != "" {
			return y, true
		}
	}
	return Try{}, false
}

// Left describes where the unfinished work of y is, for the next holder of the task; "" if it was finished.
func (y Try) Left() string {
	var parts []string
	if y.Unfinished && y.Commit != "" {
		parts = append(parts, "Its changes are in the files of your tree, on top of the line, and `git status` lists them: continue there. "+
			"Where the line has changed the same lines meanwhile, a file shows the line's between <<<<<<< and =======, then this work's up to >>>>>>>: bring the two together and remove these markers.")
	}
	switch {
	case y.LeftOut != "":
		parts = append(parts, fmt.Sprintf("Too large to be stored, or not for a commit: %s. They are on host %s.", y.LeftOut, y.Host))
	case y.Unfinished && y.Host != "":
		parts = append(parts, fmt.Sprintf("Its changes, if there are any, were not stored. They are on host %s, and in your tree only if you held the task there.", y.Host))
	}
	return strings.Join(parts, " ")
}

// Branch returns the branch with the returned work for the next holder of a task.
func (y Try) Branch(id TaskID) string { return fmt.Sprintf("returned/%s/%d", id, y.Epoch) }

// LastTry returns how the hold before the present one of t ended, from copies of its record, oldest first; nil if there
// was none, or its copy is gone. unmerged is the last hold whose work was returned, if that was an earlier one.
func (t Task) LastTry(copies []Task) (last, unmerged *Try) {
	last = t.lastHold(copies)
	unmerged, freed := t.lastReturned(copies)
	if unmerged != nil && (last == nil || last.Epoch == freed) {
		return unmerged, nil
	}
	return last, unmerged
}

// lastHold is LastTry without regard to the work.
func (t Task) lastHold(copies []Task) *Try {
	for _, c := range slices.Backward(copies) {
		switch {
		case c.Epoch >= t.Epoch, c.Status == InProgress && c.Assignee == t.Assignee: // the present one, or one that this one has adopted
		case c.Status == InProgress:
			return &Try{By: c.Assignee, Reason: "it was given to " + string(t.Assignee) + " instead", Epoch: c.Epoch}
		case c.Reason != "":
			return &Try{By: c.Assignee, Reason: c.Reason, Epoch: c.Epoch}
		default:
			return nil
		}
	}
	return nil
}

// lastReturned returns the last hold whose work was returned, or not finished, and the epoch of the write that ended
// it.
func (t Task) lastReturned(copies []Task) (last *Try, freed uint64) {
	if len(t.Returned) == 0 {
		return nil, 0
	}
	work := t.Returned[len(t.Returned)-1]
	freed = work.Epoch
	for _, c := range copies {
		if n := len(c.Returned); n > 0 && c.Returned[n-1] == work { // the first of these is that write
			if !work.Unfinished || c.Status != InProgress { // else the work was stored when the task had its next holder
				work.Reason, freed = c.Reason, c.Epoch
			}
			break
		}
	}
	return &work, freed
}

// maxReturned bounds how much returned work a task's record names.
const maxReturned = 16

// ReturnedEpochs returns the epochs under which work of t was returned.
func (t Task) ReturnedEpochs() (all []uint64) {
	for _, y := range t.Returned {
		all = append(all, y.Epoch)
	}
	return all
}

// Needs reports whether the work of a hold of t may still be merged, continued or read. After completion none is.
func (t Task) Needs(epoch uint64) bool {
	if t.Status == Completed {
		return false
	}
	return epoch == t.Epoch || slices.ContainsFunc(t.Returned, func(y Try) bool { return y.Epoch == epoch })
}
