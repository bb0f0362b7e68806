// Package permission judges calls of tools by rules such as "Bash(git push *)": [Parse] checks the rules, [Rules.Decide] applies them
// to one call, and [Judge] adds the mode and the sandbox where no rule matches.
//
// A command line is read in the order in which bash runs it. A part without a plain known form is a doubt: a rule of deny or ask that
// may apply to it asks, and no rule allows it. It looks at the disk for symbolic links and for files in folders only. What a program
// does is for package sandbox, which keeps the files of [Rules.Held]; package approval asks.
package permission
