// Package permission judges calls of tools by rules such as "Bash(git push *)": [Parse] checks the rules, [Rules.Decide] applies them
// to one call, and [Judge] adds the mode and the sandbox where no rule matches.
//
// A command line is read in the order in which bash runs it. A part without a known plain form is a doubt: a deny or ask rule that
// may apply to it asks, and no rule allows it. The package reads the disk only for symbolic links and for files in folders. Package
// sandbox confines the effects of programs, and protects the files of [Rules.Held]; package approval asks.
package permission
