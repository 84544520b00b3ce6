package main

import (
	"fmt"
	"strings"
)

const echoTool = `{"name":"echo","description":"Returns the text that it is given.","inputSchema":` +
	`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}}`

// listResult returns the result of tools/list with n tools: echo, and others of
// about 1,300 bytes each, which is what tools of real servers have.
func listResult(n int) []byte {
	var sb strings.Builder
	sb.WriteString(`{"tools":[` + echoTool)
	for i := 1; i < n; i++ {
		sb.WriteString("," + otherTool(i))
	}
	sb.WriteString("]}")
	return []byte(sb.String())
}

// otherTool is a tool that nobody calls. No two have the same schema.
func otherTool(i int) string {
	return fmt.Sprintf(`{"name":"record_%[1]d","title":"Record %[1]d","description":"Looks up records of kind %[1]d by their owner, `+
		`state and time, newest first, and returns one page of them with the cursor of the next. Use it when the number of a record is not known; `+
		`with a number, read the record itself, which also has its history and its comments.","inputSchema":{"type":"object","properties":{`+
		`"owner":{"type":"string","minLength":1,"description":"Who the record belongs to, as a name or as an address."},`+
		`"kind_%[1]d":{"type":"string","description":"Only records of this part of kind %[1]d."},`+
		`"state":{"type":"string","enum":["open","waiting","closed","all"],"default":"open","description":"Only records in this state."},`+
		`"labels":{"type":"array","items":{"type":"string"},"description":"Only records that carry all of these labels."},`+
		`"since":{"type":"string","format":"date-time","description":"Only records that changed at this time or later, in RFC 3339."},`+
		`"sort":{"type":"string","enum":["created","updated","comments"],"description":"What the order follows."},`+
		`"per_page":{"type":"integer","minimum":1,"maximum":100,"default":30,"description":"How many records one page has."},`+
		`"page":{"type":"integer","minimum":1,"description":"Which page to return."}},"required":["owner"],"additionalProperties":false},`+
		`"annotations":{"readOnlyHint":true,"openWorldHint":true}}`, i)
}
