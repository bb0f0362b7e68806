package agui

// NewAlive is New with another time between two signs of life.
var NewAlive = newHandler
