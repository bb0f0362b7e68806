// Package config holds the settings of a process and knows where each one came
// from: a flag, else the environment, else the nearest team.yaml up the tree, else a
// default. The server alone has one more source, the nearest cluster file up the
// tree, which "teamctl up" leaves there for the commands run beside it.
//
// The models that a process may ask have names of its own, aliases: the mapping
// `models:` of team.yaml, or one that the plain settings make ([Config.Aliases]). A
// team knows nothing but these names.
//
// It reads and checks; it does not connect to anything (package broker) and knows
// nothing of a team's own settings, which live in its Team record (package team).
package config
