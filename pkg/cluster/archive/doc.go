// Package archive saves a team into one file, makes a team from such a file in another cluster, and
// exports a team as files for people.
//
// A save holds the team's streams at one instant: board, members, mail, conversations and files,
// including the history of the integration branch. Every message keeps its sequence, since
// conversations and positions in the feed refer to them. Data on hosts is not included: the trees
// of tasks, the homes of members, the user's checkout.
//
// Package registry keeps the marks that prevent work on a team in two places. This package starts
// no process for a loaded team: a leader finds it, as after a crash of everything.
package archive
