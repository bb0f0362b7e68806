// Package explain describes the records of a team in words: why no member works on a task ([Situation]), the
// state of a team ([Overview]), what happened to a task ([History]), and which change of a task no rule
// allows ([Unlawful]).
//
// It does no I/O and decides nothing: callers pass the records. The rules are those of package team.
package explain
