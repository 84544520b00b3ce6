package httptool
import ("testing";"context";"time";"runtime";"github.com/toolcrib/toolcrib/tools";"os")
func TestBig(t *testing.T){
 for _,f:=range []string{"stripe.yaml","docusignv3.1.json","asana.yaml","burgershop.openapi.yaml"}{
  s,err:=NewOpenAPI(OpenAPIConfig{Name:"x",Document:os.Getenv("BIG")+"/"+f,ServerURL:"https://api.example.com"})
  if err!=nil{t.Fatal(err)}
  st:=time.Now()
  list,err:=s.Discover(context.Background())
  if err!=nil{t.Error(f,err);continue}
  el:=time.Since(st)
  var m runtime.MemStats; runtime.ReadMemStats(&m); tot:=m.TotalAlloc
  runtime.GC();runtime.GC(); runtime.ReadMemStats(&m)
  a,o,mx:=0,0,0
  for _,d:=range list{a+=len(d.Tool.ArgsSchema);o+=len(d.Tool.OutSchema);mx=max(mx,len(d.Tool.ArgsSchema))}
  t.Logf("%s: %d tools %d refused in %v total %dMB live %dMB args %dKB out %dKB maxargs %dKB",f,len(list),len(s.Refused()),el,tot>>20,m.HeapAlloc>>20,a>>10,o>>10,mx>>10)
  for _,r:=range s.Refused()[:min(5,len(s.Refused()))]{t.Log(r.Name,r.Err)}
  if err:=s.Check(context.Background());err!=nil{e:=err.Error();t.Log("check",e[:min(len(e),400)])}
  st=time.Now()
  cat:=tools.NewCatalog()
  ch:=cat.(tools.LiveCatalog).SwapSource(s.SourceID(),list)
  t.Logf("registered %d refused %d in %v",len(ch.Added),len(ch.Refused),time.Since(st))
  for _,r:=range ch.Refused[:min(5,len(ch.Refused))]{t.Log(r.Name,r.Err)}
  runtime.GC(); runtime.ReadMemStats(&m); t.Logf("live with catalog %dMB",m.HeapAlloc>>20)
  t.Log(list[3].Tool.Name, string(list[3].Tool.ArgsSchema)[:min(len(list[3].Tool.ArgsSchema),600)])
  runtime.KeepAlive(cat)
 }
}
