// Package permission judges calls of tools by rules that people write, such as
// "Bash(git push *)": [Parse] checks the rules, [Rules.Decide] applies them to one call, and
// [Judge] adds what holds where no rule matches.
//
// A command line is parsed as bash parses it, and read in the order in which bash runs it. A part
// that has no plain known form is a doubt: a rule of deny or ask that may apply to it asks, and no
// rule allows it. What a program does once it runs is the matter of package sandbox, which keeps
// the files of [Rules.Held].
//
// The disk is looked at for symbolic links and for files in folders, and nothing else is. The
// package asks nobody (package approval does) and runs nothing.
package permission
