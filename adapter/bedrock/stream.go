package bedrock

import (
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/toolcrib/toolcrib/adapter"
)

// AddEvent adds an event of ConverseStream and returns the calls that are whole
// with it. Events that have nothing to do with text or calls are passed over.
func AddEvent(s *adapter.Stream, event types.ConverseStreamOutput) ([]adapter.Call, error) {
	encoded := encodeEvent(event)
	if encoded == nil {
		return nil, nil
	}
	raw, err := json.Marshal(encoded)
	if err != nil {
		return nil, err
	}
	return s.Add(raw)
}

type members = map[string]any

// encodeEvent returns an event as the API writes it, or nil.
func encodeEvent(event types.ConverseStreamOutput) members {
	switch e := event.(type) {
	case *types.ConverseStreamOutputMemberContentBlockStart:
		body := members{"contentBlockIndex": aws.ToInt32(e.Value.ContentBlockIndex)}
		if start, ok := e.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
			body["start"] = members{"toolUse": members{
				"toolUseId": aws.ToString(start.Value.ToolUseId), "name": aws.ToString(start.Value.Name),
			}}
		}
		return members{"contentBlockStart": body}
	case *types.ConverseStreamOutputMemberContentBlockDelta:
		body := members{"contentBlockIndex": aws.ToInt32(e.Value.ContentBlockIndex), "delta": encodeDelta(e.Value.Delta)}
		return members{"contentBlockDelta": body}
	case *types.ConverseStreamOutputMemberContentBlockStop:
		return members{"contentBlockStop": members{"contentBlockIndex": aws.ToInt32(e.Value.ContentBlockIndex)}}
	case *types.ConverseStreamOutputMemberMessageStop:
		return members{"messageStop": members{"stopReason": string(e.Value.StopReason)}}
	}
	return nil
}

func encodeDelta(delta types.ContentBlockDelta) members {
	switch d := delta.(type) {
	case *types.ContentBlockDeltaMemberText:
		return members{"text": d.Value}
	case *types.ContentBlockDeltaMemberToolUse:
		return members{"toolUse": members{"input": aws.ToString(d.Value.Input)}}
	case *types.ContentBlockDeltaMemberReasoningContent:
		switch r := d.Value.(type) {
		case *types.ReasoningContentBlockDeltaMemberText:
			return members{"reasoningContent": members{"text": r.Value}}
		case *types.ReasoningContentBlockDeltaMemberSignature:
			return members{"reasoningContent": members{"signature": r.Value}}
		case *types.ReasoningContentBlockDeltaMemberRedactedContent:
			return members{"reasoningContent": members{"redactedContent": r.Value}}
		}
	}
	return members{}
}
