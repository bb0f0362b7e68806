// Package permission judges calls of tools by rules that people write, such as
// "Bash(git push *)": [Parse] checks the rules, [Rules.Decide] applies them to one call, and
// [Judge] adds what holds where no rule matches.
//
// A command line is parsed as bash does it. A rule allows it only if each program that it starts
// is known and allowed; what cannot be known is never allowed by a rule. Rules are comfort: what a
// program does once it runs is the matter of package sandbox.
//
// All is computed from the call: no file is looked at, so symbolic links are not followed. The
// package asks nobody (package approval does) and runs nothing.
package permission
