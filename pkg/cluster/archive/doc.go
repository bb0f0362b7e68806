// Package archive saves a team into one file, and makes a team of such a file in another cluster,
// or exports it as files that people read.
//
// A save holds the team's streams as they were at one instant: board, members, mail, conversations
// and files, the line's history among these. Every message keeps its sequence, since conversations
// and places in the feed name them. What is on a host only is not in it: the trees of tasks, the
// homes of members, the user's checkout.
//
// The marks by which a team is not worked on in two places are kept by package registry. Who runs
// the loaded team is none of its business: a leader finds it, as after a crash of everything.
package archive
