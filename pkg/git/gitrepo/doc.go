// Package gitrepo is the git side of a team's line, the branch that has the work of every
// completed task once: a bare repository of our own ([Repo]), a tree for each task that its
// member works in ([Tree]), and what goes to and from the user's checkout ([Checkout]).
//
// Trust has three levels, and no program of a lower one runs at a higher:
//
//   - The bare repository is written by this package only. All that is computed, merges and
//     diffs among it, is computed there: git reads no attributes of the tree in a bare
//     repository, so no merge driver, filter or hook that the files name counts.
//   - The user's checkout may hold a repository from elsewhere. Its objects and its HEAD are
//     read with its programs turned off. Only [Repo.Land] writes there, and it is the user's
//     command.
//   - A tree is its member's once it is made, its .git too. This package then never runs git
//     there, but for [Tree.Commit] and [Tree.Forward], which run it inside the member's
//     sandbox. What comes out, a bundle, is checked in a folder aside before any of it is
//     seen by the repository.
//
// Every git that is started here has an environment without the user's settings, a deadline
// and bounded output. Hashes are SHA-1 in 40 hexadecimal digits.
//
// It knows neither the board nor NATS: who may move the line, and in which order, is for its
// caller. What each of the calls promises holds for several processes on one folder.
package gitrepo
