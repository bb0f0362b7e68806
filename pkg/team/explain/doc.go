// Package explain puts into words what the records of a team show: why no member works on a task
// ([Situation]), how a team stands ([Overview]), what happened to a task ([History]), and which
// change of a task no rule allows ([Unlawful]).
//
// It reads nothing and decides nothing: its callers pass what they have read. The rules are
// those of package team.
package explain
