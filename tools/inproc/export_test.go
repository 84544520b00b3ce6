package inproc

// Decoder lets tests compare the decoder with encoding/json.
var Decoder = decoder
