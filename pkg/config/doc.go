// Package config loads the settings of a process and records the source of each: a flag, else the environment, else the
// nearest team.yaml up the tree, else a default. The server has one more source, the nearest cluster file up the tree,
// which "teamctl up" writes for the commands beside it.
//
// The models of a process have local names, aliases: in the mapping `models:` of team.yaml, or one from the plain
// settings ([Config.Aliases]). A team stores only these names.
//
// It reads and checks; it does not connect to anything (package broker), and it does not read a team's own settings,
// which are in its Team record (package team).
package config
