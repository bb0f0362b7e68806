package v1

// NewWithin is New with another limit for all requests.
var NewWithin = newHandler
