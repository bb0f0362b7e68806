// Package usage sums up the tokens and costs of a team's model calls by agent, role, alias or task. It reads the calls
// from the records in the members' journals.
//
// No sum is stored: each is read from the journals, so it is right after any crash, and covers the records that they
// still hold. Package model fills in tokens and prices when a call is made; a price that was not known then stays
// unknown.
package usage
