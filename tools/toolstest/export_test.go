package toolstest

// NothingLeftWithin is NothingLeft with another grace.
var NothingLeftWithin = nothingLeft
