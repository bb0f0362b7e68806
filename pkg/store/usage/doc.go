// Package usage tells what the model calls of a team have used: it makes calls of
// the records in the members' journals, and sums them up by agent, role, alias or
// task.
//
// Nothing is counted twice or kept anywhere: a sum is read from the journals each
// time, so it is right after any crash, and holds what they still hold. Tokens and
// prices are filled in by package model when a call is made; a price that was not
// known then stays unknown.
package usage
