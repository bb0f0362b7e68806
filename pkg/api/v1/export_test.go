package v1

// NewWithin is New with another limit for all requests.
var NewWithin = newHandler

// PageOf is pageOf of numbers.
func PageOf(all []int, from, limit int, wanted func(int) bool) ([]int, string) {
	return pageOf(all, from, limit, wanted)
}
