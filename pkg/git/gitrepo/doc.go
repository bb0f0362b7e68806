// Package gitrepo is the git side of a team's integration branch, which has the work of every completed task once: a bare
// repository of our own ([Repo]), a tree for each task in which its member works ([Tree]), and the transfer to and from the
// user's checkout ([Checkout]).
//
// Trust has three levels, and no program of a lower one runs at a higher:
//
//   - Only this package writes the bare repository. All merges and diffs are computed there: in a bare repository git reads
//     no attributes of the tree, so no merge driver, filter or hook that the files name has an effect.
//   - The user's checkout may hold a repository from elsewhere. Its objects and its HEAD are read with its programs turned
//     off. Only [Repo.Land], [Repo.Publish] and [Exclude] write there, at the user's command.
//   - A tree, with its .git, belongs to its member once it is made. This package then never runs git on that
//     .git, except in [Tree.Commit], [Tree.Save] and the calls that move the tree, which run it inside the member's sandbox.
//     The resulting bundle is checked in a separate folder before the repository sees any of it.
//
// Except in [Repo.Land] and [Repo.Publish], git does its work without the user's settings; it always has a deadline and
// bounded output. Hashes are SHA-1 in 40 hexadecimal digits.
//
// It knows neither the board nor NATS: its caller decides who may move the branch, and in which order. Each call may run in
// several processes on one folder at the same time.
package gitrepo
