package schema

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/yosida95/uritemplate/v3"
)

// format is a form that a text can be asked to have.
type format struct {
	name  string
	valid func(text string) bool
}

// formatNamed returns the format that a schema names, nil for one that is not
// known, which every text has.
func formatNamed(name string) *format {
	valid := checkOfFormat(name)
	if valid == nil {
		return nil
	}
	return &format{name, valid}
}

func checkOfFormat(name string) func(string) bool {
	switch name {
	case "date":
		return isDate
	case "time":
		return isTime
	case "date-time":
		return isDateTime
	case "duration":
		return isDuration
	case "email":
		return isEmail
	case "hostname":
		return isHostname
	case "ipv4":
		return isIPv4
	case "ipv6":
		return isIPv6
	case "uuid":
		return isUUID
	case "json-pointer":
		return isPointer
	case "relative-json-pointer":
		return isRelativePointer
	case "regex":
		return isRegex
	}
	return checkOfAddress(name)
}

func checkOfAddress(name string) func(string) bool {
	switch name {
	case "uri":
		return func(s string) bool { return isReference(s, uriCharacter, true) }
	case "uri-reference":
		return func(s string) bool { return isReference(s, uriCharacter, false) }
	case "iri":
		return func(s string) bool { return isReference(s, iriCharacter, true) }
	case "iri-reference":
		return func(s string) bool { return isReference(s, iriCharacter, false) }
	case "uri-template":
		return func(s string) bool { _, err := uritemplate.New(s); return err == nil }
	}
	return nil
}

// isDate reports whether s is a full-date of RFC 3339.
func isDate(s string) bool {
	_, err := time.Parse("2006-01-02", s)
	return err == nil && len(s) == len("2006-01-02")
}

// isDateTime reports whether s is a date-time of RFC 3339.
func isDateTime(s string) bool {
	const date = len("2006-01-02")
	return len(s) > date && isDate(s[:date]) && s[date]|0x20 == 't' && isTime(s[date+1:])
}

// isTime reports whether s is a full-time of RFC 3339. A leap second is only
// ever the last of a day in UTC.
func isTime(s string) bool {
	hour, minute, rest, ok := clock(s)
	if !ok || len(rest) < 3 || rest[0] != ':' {
		return false
	}
	second, ok := twoDigits(rest[1:])
	if !ok || second > 60 {
		return false
	}
	rest = rest[3:]
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		if rest = strings.TrimLeft(fraction, "0123456789"); rest == fraction {
			return false
		}
	}
	offset, ok := zone(rest)
	day := 24 * 60
	utc := (hour*60 + minute - offset + 2*day) % day
	return ok && (second < 60 || utc == day-1)
}

// clock reads hours and minutes, with a colon between them.
func clock(s string) (hour, minute int, rest string, ok bool) {
	if len(s) < 5 || s[2] != ':' {
		return 0, 0, "", false
	}
	hour, okHour := twoDigits(s)
	minute, okMinute := twoDigits(s[3:])
	return hour, minute, s[5:], okHour && okMinute && hour < 24 && minute < 60
}

// zone reads a time-offset and returns it in minutes.
func zone(s string) (offset int, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if s == "" || s[0] != '+' && s[0] != '-' {
		return 0, false
	}
	hour, minute, rest, ok := clock(s[1:])
	if offset = hour*60 + minute; s[0] == '-' {
		offset = -offset
	}
	return offset, ok && rest == ""
}

func twoDigits(s string) (int, bool) {
	n, err := strconv.ParseUint(s[:2], 10, 8)
	return int(n), err == nil
}

// isDuration reports whether s is a duration of ISO 8601, in the form that
// RFC 3339 gives in its appendix A, save that units may be left out.
func isDuration(s string) bool {
	s, ok := strings.CutPrefix(s, "P")
	if !ok {
		return false
	}
	if weeks, ok := strings.CutSuffix(s, "W"); ok {
		return weeks != "" && isDigits(weeks)
	}
	date, clock, timed := strings.Cut(s, "T")
	if timed && !isUnits(clock, "HMS") {
		return false
	}
	return date == "" && timed || isUnits(date, "YMD")
}

// isUnits reports whether s is numbers, each with its unit, in the order of the
// units.
func isUnits(s, units string) bool {
	last := -1
	for s != "" {
		rest := strings.TrimLeft(s, "0123456789")
		if rest == s || rest == "" {
			return false
		}
		unit := strings.IndexByte(units, rest[0])
		if unit <= last {
			return false
		}
		last, s = unit, rest[1:]
	}
	return last >= 0
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

func isIPv4(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is4()
}

func isIPv6(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is6() && addr.Zone() == ""
}

// isUUID reports whether s is a UUID as RFC 4122 writes it.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isHex(c) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return c-'0' <= 9 || c|0x20-'a' <= 5 }

// isPointer reports whether s is a JSON Pointer (RFC 6901).
func isPointer(s string) bool {
	if s != "" && s[0] != '/' {
		return false
	}
	for rest := s; ; {
		_, after, found := strings.Cut(rest, "~")
		if !found {
			return true
		}
		if after == "" || after[0] != '0' && after[0] != '1' {
			return false
		}
		rest = after
	}
}

// isRelativePointer reports whether s is a relative JSON Pointer.
func isRelativePointer(s string) bool {
	rest := strings.TrimLeft(s, "0123456789")
	up := s[:len(s)-len(rest)]
	if up == "" || up[0] == '0' && up != "0" {
		return false
	}
	return rest == "#" || isPointer(rest)
}

func isRegex(s string) bool {
	_, err := compilePattern(s)
	return err == nil
}
