// Package budget draws what model calls use from a team's budgets, before the calls are made.
//
// The limits are in the team's record ([team.Budgets]); the use is in one record of the team's bucket, the ledger. A
// member draws a slice of each budget that holds for its calls by compare-and-set, and makes calls of it without
// further writes to the ledger. Before each call it records the call under its own key. So drawn slices never exceed a
// budget, and processes contend for the ledger once a slice.
//
// A slice of a member that is gone is given back once its key has not changed for a lease, less its calls and the call
// under way. The key is closed first: a process that was only paused then cannot begin a call of the slice.
//
// The package knows no model and no price: package agent/runtime does.
package budget
